package egret

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What makes foreign text safe for a terminal: values of tuples, errors of user code, names
// and words of other nodes. It is to be shown, not obeyed, and read in the order in which it
// stands there.

// obeyed reports whether a terminal may do something else with r than show it: controls of
// ASCII and Latin-1, separators of lines, marks of direction, and what has no width.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// oneLine cuts a text to so many characters, without those that a terminal would obey.
func oneLine(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			return b.String() + "..."
		}
		if obeyed(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plainText is a text of several lines without what a terminal would obey, but for their
// ends and tabs.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && obeyed(r) {
			return ' '
		}
		return r
	}, s)
}

// plainJSON writes what a terminal would obey as JSON escapes it: it says the same.
func plainJSON(text []byte) []byte {
	var b []byte
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRune(text[at:])
		switch {
		case r < utf8.RuneSelf && r != 0x7f || !obeyed(r):
			b = append(b, text[at:at+n]...) // JSON has no other controls of ASCII but between values
		case r > 0xffff:
			hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			b = fmt.Appendf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		at += n
	}
	return b
}

// encode writes a value as a line of JSON.
func encode(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(plainJSON(text), '\n'))
	return err
}

// A plainLog is a log of events, whose messages have foreign text in them: each is one line,
// so that nobody can write lines of others. Attributes are quoted by who writes them.
type plainLog struct{ slog.Handler }

func plainLogger(l *slog.Logger) *slog.Logger { return slog.New(plainLog{l.Handler()}) }

const mostMessage = 4 << 10 // characters

func (p plainLog) Handle(ctx context.Context, r slog.Record) error {
	r.Message = oneLine(r.Message, mostMessage)
	return p.Handler.Handle(ctx, r)
}

func (p plainLog) WithAttrs(a []slog.Attr) slog.Handler { return plainLog{p.Handler.WithAttrs(a)} }
func (p plainLog) WithGroup(name string) slog.Handler   { return plainLog{p.Handler.WithGroup(name)} }
