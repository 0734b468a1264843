package egret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/view"
)

// evil has of each kind what a terminal obeys.
const evil = "\x1b]0;owned\x07\x1b[2J \u009b31m \u009d0;t\u009c \x7f \u202ebidi\u2066 \u200f\u2028\u2029\ufeff\U000e0041 \r\n\x00\xff"

// unobeyed sees that a text has nothing that a terminal obeys, but for these.
func unobeyed(t require.TestingT, text, but string) {
	for _, r := range text {
		require.True(t, strings.ContainsRune(but, r) || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029', "%q in %q", r, text)
	}
}

func TestPlain(t *testing.T) {
	unobeyed(t, oneLine(evil, 1000), "")
	unobeyed(t, plainText(evil), "\n\t")
	require.Equal(t, "a\tä漢\n b", plainText("a\tä漢\n\x1bb"))
	require.Equal(t, "ab...", oneLine("abc", 2))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{evil, "\U0001f600", `\u202e"`})).Draw(t, "text")
		unobeyed(t, oneLine(text, 1000), "")
		unobeyed(t, plainText(text), "\n\t")
		var out bytes.Buffer
		require.NoError(t, encode(&out, map[string]string{text: text}))
		unobeyed(t, strings.TrimSuffix(out.String(), "\n"), "")
		var got map[string]string
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		same := strings.ToValidUTF8(text, "\ufffd")
		if same == text {
			require.Equal(t, map[string]string{same: same}, got, "it says the same")
		}
	})
}

// What tasks say of foreign text is one line of the log, with nothing in it that is obeyed.
func TestForeignTextInTheLog(t *testing.T) {
	var out bytes.Buffer
	v := events{topology: "top", logger: plainLogger(slog.New(slog.NewTextHandler(&out, nil)).With("a", 1).WithGroup("g"))}
	for _, e := range []task.Event{
		&task.Died{Task: "count/1", Err: &task.PanicError{Component: "count", Value: evil, Stack: []byte("a\n\tb"), Tuple: evil}},
		&task.Failure{Task: "count/1", Err: evil, Tuple: evil},
		&task.TimedOut{Task: "count/1", Err: evil},
		&task.Notice{Task: "count/1", Text: evil},
		&task.DeadLetter{Task: "in/0", Err: evil},
		&task.SourceError{Task: "in/0", Split: evil, Position: evil, Err: errors.New(evil)},
		&task.QueueError{Task: "in/0", Err: errors.New(evil), Again: time.Second},
		&task.StoreError{Doing: "save", Err: errors.New(evil)},
	} {
		out.Reset()
		v.tell(e)
		require.NotEmpty(t, out.String())
		unobeyed(t, strings.TrimSuffix(out.String(), "\n"), "\x7f") // which a text handler leaves in attributes
	}
	message := &bytes.Buffer{} // and of a handler that writes messages as they are
	plainLogger(slog.New(raw{slog.DiscardHandler, message})).Error(evil)
	unobeyed(t, message.String(), "")
}

func TestForeignTextOfCommands(t *testing.T) {
	var out strings.Builder
	(&errorsOptions{verbose: true}).print(&out, []view.Error{{Topology: evil, Task: evil, Node: evil, Kind: evil, Text: evil, Tuple: evil, Stack: evil}}, time.Now())
	unobeyed(t, out.String(), "\n")
	values, err := json.Marshal(evil)
	require.NoError(t, err)
	line := plainJSON(tappedLine([]string{evil}, &view.Tapped{Task: evil, Node: evil, Values: []json.RawMessage{values}}))
	unobeyed(t, strings.TrimSuffix(string(line), "\n"), "")
	require.True(t, json.Valid(line))
	var notes strings.Builder
	(&noteWriter{w: &notes}).note(&view.Tapped{Error: evil})
	unobeyed(t, strings.TrimSuffix(notes.String(), "\n"), "")
}

// raw writes messages as they are.
type raw struct {
	slog.Handler
	out *bytes.Buffer
}

func (r raw) Enabled(context.Context, slog.Level) bool { return true }
func (r raw) Handle(_ context.Context, x slog.Record) error {
	r.out.WriteString(x.Message)
	return nil
}
