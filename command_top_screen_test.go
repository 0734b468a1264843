package egret

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a text there is as much as a terminal has room for, and the last line says how to leave.
func TestTopScreen(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		err  error
		want string
	}{
		{"there is room", 80, 24, nil, "one\r\ntwo\r\nthree hundred thirty-three\r\nfour\r\nfive\r\n\r\nleave"},
		{"few lines", 80, 6, nil, "one\r\ntwo\r\nthree hundred thirty-three\r\nand 2 lines more\r\n\r\nleave"},
		{"narrow", 20, 24, nil, "one\r\ntwo\r\nthree hundred thirt…\r\nfour\r\nfive\r\n\r\nleave"},
		{"it is not known", 0, 0, errors.New("no"), "one\r\ntwo\r\nthree hundred thirty-three\r\nfour\r\nfive\r\n\r\nleave"},
	} {
		var out strings.Builder
		s := &topScreen{out: &out, size: func() (int, int, error) { return tt.w, tt.h, tt.err }, hint: "leave"}
		s.show("one\ntwo\nthree hundred thirty-three\nfour\nfive\n")
		require.Equal(t, clearScreen+tt.want, out.String(), tt.name)
		if tt.err == nil {
			require.LessOrEqual(t, strings.Count(out.String(), "\n")+1, tt.h, "it does not scroll")
		}
	}
}

// q and Ctrl-C leave, no other key does, and nor can who has no keys any more stay for ever.
func TestTopLeaves(t *testing.T) {
	for _, keys := range []string{"q", "xyzQab", "\x1b[A\x1b[Bq", "a\x03", "abc", ""} {
		in, typed := io.Pipe()
		quit := make(chan struct{})
		go awaitQuit(in, func() { close(quit) })
		for i, key := range keys {
			select {
			case <-quit:
				require.Fail(t, "it has left", "before %q of %q", keys[i:], keys)
			default:
			}
			if _, err := io.WriteString(typed, string(key)); strings.ContainsRune("qQ\x03", key) {
				require.NoError(t, err)
				break
			}
		}
		typed.Close()
		<-quit
	}
}

// What was on the terminal is put back, also if keys come from elsewhere, and then those
// are left alone.
func TestTopPutsBack(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	require.NoError(t, err)
	defer f.Close()
	s, leave := onScreen(f, f, strings.NewReader("q"), func() { t.Error("nobody has typed q") })
	require.Equal(t, "Ctrl-C leaves", s.hint)
	s.show("text\n")
	leave()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, enterScreen+clearScreen+"text\r\n\r\nCtrl-C leaves"+leaveScreen, string(b))
}
