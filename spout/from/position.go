package from

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// headSize is how many bytes of a file's text its fingerprint covers at most.
const headSize = 4 << 10

// A position is where the reader of a split goes on. As a text it is a byte, then the
// number of the line if it is known, then the fingerprint if there is one:
//
//	4194310:70012@4096-1c291ca3
type position struct {
	at   int64 // byte of the text
	line int64 // from 1; 0: not known
	head fingerprint
}

// A fingerprint tells a file from another one of its name: it is the checksum of the
// first n bytes of the text. What may still be put right or appended, which is what
// lies behind the position, has no part in it.
type fingerprint struct {
	n   int // 0: there is none
	sum uint32
}

func fingerprintOf(head []byte) fingerprint {
	return fingerprint{len(head), crc32.ChecksumIEEE(head)}
}

func (p position) String() string {
	b := strconv.AppendInt(make([]byte, 0, 48), p.at, 10)
	if p.line > 0 {
		b = strconv.AppendInt(append(b, ':'), p.line, 10)
	}
	if p.head.n > 0 {
		b = fmt.Appendf(b, "@%d-%08x", p.head.n, p.head.sum)
	}
	return string(b)
}

// parsePosition reads what String has written, and nothing else.
func parsePosition(text string) (p position, ok bool) {
	place, head, marked := strings.Cut(text, "@")
	at, line, numbered := strings.Cut(place, ":")
	var err error
	if p.at, err = strconv.ParseInt(at, 10, 64); err != nil {
		return position{}, false
	}
	if numbered {
		if p.line, err = strconv.ParseInt(line, 10, 64); err != nil {
			return position{}, false
		}
	}
	if marked {
		n, sum, _ := strings.Cut(head, "-")
		if p.head.n, err = strconv.Atoi(n); err != nil {
			return position{}, false
		}
		bits, err := strconv.ParseUint(sum, 16, 32)
		if err != nil {
			return position{}, false
		}
		p.head.sum = uint32(bits)
	}
	// The rest of what String never writes: "+1", "007", an uppercase checksum, ...
	return p, p.at >= 0 && p.head.n <= headSize && int64(p.head.n) <= p.at && p.String() == text
}
