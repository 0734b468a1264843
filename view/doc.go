// Package view has the words for what people and programs are shown of running
// topologies: the page, the API under /api/v1, and the commands that look. It is not for
// use outside Egret; the API is.
//
//	counters of a node --Read--> Sample --Join--> Sample of all nodes
//	                                                    |
//	                              a Sample of before --Compare--> Overview, Detail
//	                                                    |
//	                                                 History
//
// A [Sample] is totals, as they are read, and adds nothing to what tasks do. What is shown
// are differences of two of them: a rate is that of a window, and says of which. All of it
// is values: nothing here knows where a sample comes from, or who looks.
//
// In JSON times are nanoseconds with names that end in _ns, moments are RFC 3339, rates are
// a second and sizes are bytes.
package view
