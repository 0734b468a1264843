// Package proto has the form in which tasks of different nodes say things to each
// other: generated Go of egret.proto. It is not for use outside Egret; package
// task makes its messages of them. Tuples do not travel in it: a parcel has a form of
// its own, see package tuple.
package proto

//go:generate go run -C ../tools ./protogen ../proto egret.proto
