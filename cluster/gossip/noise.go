package gossip

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// noise lets memberlist talk at the level of debugging, except for what somebody has to
// put right: that is a warning, once a minute.
type noise struct {
	logger *slog.Logger
	mu     sync.Mutex
	warned map[string]time.Time // the few sentences of this package
}

func (n *noise) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	n.logger.Debug(text)
	if bytes.Contains(line, []byte("UDP probes failed")) {
		n.warn("a member answers over TCP but not over UDP: let UDP through on the same port, or deaths are noticed late", "detail", text)
	}
	return len(line), nil
}

func (n *noise) warn(sentence string, args ...any) {
	n.mu.Lock()
	last, ok := n.warned[sentence]
	due := !ok || time.Since(last) >= time.Minute
	if due {
		if n.warned == nil {
			n.warned = map[string]time.Time{}
		}
		n.warned[sentence] = time.Now()
	}
	n.mu.Unlock()
	if due {
		n.logger.Warn(sentence, args...)
	}
}
