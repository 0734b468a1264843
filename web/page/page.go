// Package page has the page's files: what people see in a browser of a run or a cluster.
// It is not for use outside Egret.
package page
