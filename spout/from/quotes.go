package from

import "bytes"

// quotes finds where a record of separated values ends: at the first line end
// that is not in a quoted cell. As in encoding/csv a quote opens only at the
// beginning of a cell, and a line in which one is elsewhere is a bad record that
// ends with the line, so that it swallows no other.
type quotes struct {
	comma byte
	at    quoteState // behind what was scanned of the record
}

type quoteState uint8

const (
	fieldStart quoteState = iota
	inField               // in a cell without quotes
	inQuotes
	afterQuote // behind a quote in quotes: the closing one, unless another follows
	astray     // behind a quote where none may be
)

// lineEnd returns the index of the line end in text, which goes on from what was
// scanned before, or -1. If it is there, the state is still that before text.
func (q *quotes) lineEnd(text []byte) int {
	at := q.at
	for i := 0; i < len(text); {
		rest := text[i:]
		switch at {
		case inQuotes:
			n := bytes.IndexByte(rest, '"')
			if n < 0 {
				q.at = inQuotes
				return -1
			}
			i += n + 1
			at = afterQuote
		case afterQuote:
			switch rest[0] {
			case '"':
				at = inQuotes
			case q.comma:
				at = fieldStart
			case '\n':
				return i
			default:
				at = astray // or the \r of a line end
			}
			i++
		case astray:
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				q.at = astray
				return -1
			}
			return i + n
		default:
			end := bytes.IndexByte(rest, '\n')
			if end >= 0 {
				rest = rest[:end]
			}
			n := bytes.IndexByte(rest, '"')
			if n < 0 {
				if end >= 0 {
					return i + end
				}
				if at = inField; rest[len(rest)-1] == q.comma {
					at = fieldStart
				}
				q.at = at
				return -1
			}
			if n > 0 {
				if at = inField; rest[n-1] == q.comma {
					at = fieldStart
				}
			}
			if at == fieldStart {
				at = inQuotes
			} else {
				at = astray
			}
			i += n + 1
		}
	}
	q.at = at
	return -1
}
