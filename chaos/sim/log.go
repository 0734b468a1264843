package sim

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/zeebo/xxh3"
)

// note writes one line of the log: the time, what happens, to whom, from whom
// and what class of message. The line may hold nothing that could differ between
// two runs of a seed, so it names a message by its Class method or its type, and
// leaves what its String method says to the written log.
func (w *World) note(what string, p, from *proc, body any) {
	line := strconv.AppendInt(w.line[:0], int64(w.Now()), 10)
	line = append(line, ' ')
	line = append(line, what...)
	if p != nil {
		line = append(line, ' ')
		line = append(line, p.label...)
	}
	if from != nil {
		line = append(line, " from "...)
		line = append(line, from.label...)
	}
	if body != nil {
		line = append(line, ' ')
		line = append(line, w.class(body)...)
	}
	w.hash = xxh3.HashSeed(line, w.hash)
	if w.look != nil {
		w.look.notes(w, line)
	}
	if w.log != nil {
		if s := w.describe(body); s != "" {
			line = append(line, ": "...)
			line = append(line, s...)
		}
		line = append(line, '\n')
		if _, err := w.log.Write(line); err != nil {
			w.fail(fmt.Errorf("writing the log: %w", err))
			w.log = nil
		}
	}
	w.line = line
}

// class names what kind of message body is.
func (w *World) class(body any) string {
	if c, ok := body.(interface{ Class() string }); ok {
		return c.Class()
	}
	t := reflect.TypeOf(body)
	name, ok := w.classes[t]
	if !ok {
		name = t.String()
		w.classes[t] = name
	}
	return name
}

// inWords returns what a message says of itself.
func inWords(body any) string {
	if s, ok := body.(fmt.Stringer); ok {
		return s.String()
	}
	return ""
}
