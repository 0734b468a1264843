// Package egret runs topologies of spouts and bolts.
package egret
