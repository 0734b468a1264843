package egret

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// What a terminal is told.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[2J"
)

// A topScreen is a terminal that a command has for itself until it leaves, with what was on
// it before put back.
type topScreen struct {
	out  io.Writer
	size func() (w, h int, err error)
	hint string // the last line
}

// onScreen takes the terminal, and its keys if in is one too: q and Ctrl-C, which is no
// interrupt then, call quit. leave puts back what was there, and is to be called in any case.
func onScreen(out io.Writer, terminal *os.File, in io.Reader, quit func()) (s *topScreen, leave func()) {
	s = &topScreen{out: out, size: func() (int, int, error) { return term.GetSize(int(terminal.Fd())) }, hint: "Ctrl-C leaves"}
	restore := func() {}
	if f, isFile := in.(*os.File); isFile && isTerminal(f) {
		if before, err := term.MakeRaw(int(f.Fd())); err == nil {
			s.hint = "q or Ctrl-C leaves"
			done := make(chan struct{})
			go func() {
				defer close(done)
				awaitQuit(f, quit)
			}()
			restore = func() {
				_ = term.Restore(int(f.Fd()), before)
				if f.SetReadDeadline(time.Unix(1, 0)) == nil { // else it waits for a key until the process ends
					<-done
				}
			}
		}
	}
	fmt.Fprint(out, enterScreen)
	return s, func() {
		fmt.Fprint(out, leaveScreen)
		restore()
	}
}

// awaitQuit reads keys, and calls quit at q or Ctrl-C, or when there are no more.
func awaitQuit(in io.Reader, quit func()) {
	defer quit()
	b := make([]byte, 64)
	for {
		n, err := in.Read(b)
		if strings.ContainsAny(string(b[:n]), "qQ\x03") || err != nil {
			return
		}
	}
}

// show shows a text, as much of it as there is room for, with the hint in the last line.
// A terminal that is raw wants to be told to return.
func (s *topScreen) show(text string) {
	w, h, err := s.size()
	if err == nil && w >= 20 && h >= 5 {
		text = clipped(text, w, h-1)
	}
	text = strings.TrimRight(text, "\n") + "\n\n" + s.hint
	fmt.Fprint(s.out, clearScreen+strings.ReplaceAll(text, "\n", "\r\n"))
}
