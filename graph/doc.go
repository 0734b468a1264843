// Package graph draws plans for other programs: as an SVG picture and in the DOT
// language. It is not for use outside Egret.
//
//	plan --> columns --> order in each --> heights --> SVG
//
//	 box   label   box    label   box
//	+---+         +---+          +---+
//	|   |--by x-->|   |--global->|   |
//	+---+         +---+          +---+
//
// Components stand in the even columns and the labels of subscriptions in the odd
// ones, each in front of its subscriber. A line is level where it goes through a
// column and curves only between two of them, and what stands in a column is kept
// apart. So no line crosses a box or a label, and none of those overlap.
package graph
