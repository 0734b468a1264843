package from

import "time"

const (
	burstMost = 10 // files that are logged, in
	burstTime = 10 * time.Second
)

// givenUp counts the files that a life of a task has moved aside, so that many of
// them do not flood the log.
type givenUp struct {
	files    int
	since    time.Time
	logged   int // since then
	unlogged int // since the last one that was
}

// tell logs that a file was given up, unless many were just now.
func (s *spool) tell(path, why string) {
	s.mu.Lock()
	s.given.files++
	if now := time.Now(); now.Sub(s.given.since) >= burstTime {
		s.given.since, s.given.logged = now, 0
	}
	if s.given.logged == burstMost {
		s.given.unlogged++
		s.mu.Unlock()
		return
	}
	s.given.logged++
	unlogged := s.given.unlogged
	s.given.unlogged = 0
	s.mu.Unlock()
	if s.logger == nil {
		return
	}
	attrs := []any{"file", path}
	if unlogged > 0 {
		attrs = append(attrs, "unlogged", unlogged)
	}
	s.logger.Warn("file was given up: "+why, attrs...)
}

// tellAll says at the end how many files were given up.
func (s *spool) tellAll() {
	s.mu.Lock()
	files := s.given.files
	s.given = givenUp{}
	s.mu.Unlock()
	if files > 0 && s.logger != nil {
		s.logger.Warn("files were given up and are in "+s.at("failed"), "files", files)
	}
}
