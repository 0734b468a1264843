package disk

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/egretstream/egret/tuple"
)

// positions are what the file of that name holds:
//
//	egret positions 1
//	topology "wordcount"
//	fingerprint "24c9..."
//	run 7
//	split "lines" "book.txt:0-4194304" 7.1 "4194304"
//	...
//	sum 0a1b2c3d
//
// Texts are quoted as in Go, so that any bytes come back as they were; the sum is
// the CRC-32C of all lines before it.
type positions struct {
	Topology    string
	Fingerprint string // of the topology that wrote them; for people
	Epoch       uint32
	Splits      map[split]position
}

type split struct{ component, split string }

type position struct {
	position string
	life     tuple.Incarnation
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodePositions(p *positions) []byte {
	var b []byte
	b = fmt.Appendf(b, "egret positions 1\ntopology %q\nfingerprint %q\nrun %d\n", p.Topology, p.Fingerprint, p.Epoch)
	keys := slices.SortedFunc(maps.Keys(p.Splits), func(a, b split) int {
		return cmp.Or(strings.Compare(a.component, b.component), strings.Compare(a.split, b.split))
	})
	for _, k := range keys {
		x := p.Splits[k]
		b = append(b, "split "...)
		b = strconv.AppendQuote(b, k.component)
		b = append(b, ' ')
		b = strconv.AppendQuote(b, k.split)
		b = fmt.Appendf(b, " %v ", x.life)
		b = append(strconv.AppendQuote(b, x.position), '\n')
	}
	return addSum(b)
}

func addSum(b []byte) []byte { return fmt.Appendf(b, "sum %08x\n", crc32.Checksum(b, castagnoli)) }

// summed returns where the lines end that addSum has added a sum to, or why that is not
// theirs, and in which line.
func summed(b []byte) (end, line int, why string) {
	end = bytes.LastIndex(b, []byte("\nsum ")) + 1
	if end == 0 {
		return 0, 1, "it has no sum at its end"
	}
	if !bytes.Equal(addSum(b[:end:end]), b) {
		return 0, bytes.Count(b[:end], []byte("\n")) + 1, "the sum is not that of the lines before it"
	}
	return end, 0, ""
}

// newer returns ErrNewer if b begins with the name of a format and a number of it
// above the one that is known.
func newer(b []byte, format string, known uint64) error {
	rest, is := bytes.CutPrefix(b, []byte(format))
	number, _, ended := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(number), 10, 16)
	if !is || !ended || err != nil || n <= known {
		return nil
	}
	return fmt.Errorf("%w: its format has the number %d, and this Egret knows %d", ErrNewer, n, known)
}

// decodePositions reads what encodePositions has written. An error is ErrCorrupt or
// ErrNewer.
func decodePositions(b []byte) (positions, error) {
	p := positions{Splits: map[split]position{}}
	fail := func(line int, format string, args ...any) (positions, error) {
		return positions{}, fmt.Errorf("%w: line %d: %s", ErrCorrupt, line, fmt.Sprintf(format, args...))
	}
	if err := newer(b, "egret positions ", 1); err != nil {
		return positions{}, err
	}
	end, line, why := summed(b)
	if why != "" {
		return fail(line, "%s", why)
	}
	lines := strings.Split(string(b[:end-1]), "\n")
	if lines[0] != "egret positions 1" {
		return fail(1, "it is %.40q and not \"egret positions 1\"", lines[0])
	}
	for i, line := range lines[1:] {
		word, rest, _ := strings.Cut(line, " ")
		f := fields{rest: rest}
		switch word {
		case "topology":
			p.Topology = f.text()
		case "fingerprint":
			p.Fingerprint = f.text()
		case "run":
			p.Epoch = f.number()
		case "split":
			k := split{f.text(), f.text()}
			life := f.life()
			if _, twice := p.Splits[k]; twice {
				return fail(i+2, "a split for the second time")
			}
			p.Splits[k] = position{f.text(), life}
		default:
			return fail(i+2, "it begins with %.40q", word)
		}
		if f.bad || f.rest != "" {
			return fail(i+2, "%.80q is no %s", line, word)
		}
	}
	return p, nil
}

// fields reads the words of a line.
type fields struct {
	rest string
	bad  bool
}

func (f *fields) text() string {
	f.rest = strings.TrimPrefix(f.rest, " ")
	q, err := strconv.QuotedPrefix(f.rest)
	if err != nil || !strings.HasPrefix(q, `"`) {
		f.bad = true
		return ""
	}
	f.rest = f.rest[len(q):]
	s, err := strconv.Unquote(q)
	f.bad = f.bad || err != nil
	return s
}

func (f *fields) word() string {
	w, rest, _ := strings.Cut(strings.TrimPrefix(f.rest, " "), " ")
	f.rest = rest
	return w
}

func (f *fields) number() uint32 { return f.parse(f.word()) }

func (f *fields) parse(w string) uint32 {
	n, err := strconv.ParseUint(w, 10, 32)
	f.bad = f.bad || err != nil
	return uint32(n)
}

func (f *fields) life() tuple.Incarnation {
	epoch, restart, _ := strings.Cut(f.word(), ".")
	return tuple.NewIncarnation(f.parse(epoch), f.parse(restart))
}

func encodeRun(n uint32) []byte { return fmt.Appendf(nil, "egret run 1\n%d\n", n) }

// decodeRun reads what encodeRun has written. An error is ErrCorrupt or ErrNewer.
func decodeRun(b []byte) (uint32, error) {
	if err := newer(b, "egret run ", 1); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(string(b), "egret run 1\n"), "\n"), 10, 32)
	if err != nil || !strings.HasPrefix(string(b), "egret run 1\n") || !bytes.HasSuffix(b, []byte("\n")) {
		return 0, fmt.Errorf("%w: it is not the number of a run", ErrCorrupt)
	}
	return uint32(n), nil
}
