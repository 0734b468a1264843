// Package tuple holds what flows: values, tuples and the parcels they travel in.
//
//	                Kinds   string  int64
//	parcel          Cells   "the"   1        <- tuple 0: slot 0, message 17
//	  from split/0          "whale" 1        <- tuple 1: slot 0, message 17
//	  to   count/1          "sea"   1        <- tuple 2: slot 1, message 3
//	                Slots   tree 41 edge e1, tree 44 edge e2
//
// The values of all tuples of a parcel lie in one slice of cells of 16 bytes; a
// [Tuple] is a view on one row of it. Cells are used again for later parcels, so
// a Tuple is good until Execute returns and no longer; the text that cells point
// at is never written again, so strings stay good for ever.
package tuple
