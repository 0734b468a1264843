package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A child is this program, started again with the path of the command bench in
// it, such as "bench".
type child struct {
	program string
	command []string
}

func (c *child) run(ctx context.Context, args []string) (Result, error) {
	out, err := output(exec.CommandContext(ctx, c.program, append(c.command[:len(c.command):len(c.command)], args...)...))
	if err != nil {
		return Result{}, err
	}
	var r Result
	if err := json.Unmarshal(out, &r); err != nil {
		return Result{}, fmt.Errorf("output of %s is no result: %w", c.program, err)
	}
	return r, nil
}

// A costModel is the program of the cost model, built once into a directory of
// its own, which close removes.
type costModel struct {
	dir      string
	duration time.Duration
}

func buildCostModel(ctx context.Context, source string, d time.Duration) (*costModel, error) {
	dir, err := os.MkdirTemp("", "egret-bench-")
	if err != nil {
		return nil, err
	}
	m := &costModel{dir: dir, duration: d}
	build := exec.CommandContext(ctx, "go", "build", "-o", m.program(), "./e2e")
	build.Dir = source
	if _, err := output(build); err != nil {
		return nil, errors.Join(fmt.Errorf("building the cost model in %s: %w", source, err), m.close())
	}
	return m, nil
}

func (m *costModel) program() string { return filepath.Join(m.dir, "e2e") }
func (m *costModel) close() error    { return os.RemoveAll(m.dir) }

func (m *costModel) run(ctx context.Context) (float64, error) {
	out, err := output(exec.CommandContext(ctx, m.program(), "-topo", "null", "-spouts", "2", "-bolts", "2", "-ack", "4",
		"-warm", warmUp.String(), "-dur", m.duration.String()))
	if err != nil {
		return 0, err
	}
	return modelRate(string(out))
}

var modelField = regexp.MustCompile(`\bspout_rec/s=([0-9.]+)`)

// modelRate reads the messages/s from what the cost model prints.
func modelRate(out string) (float64, error) {
	m := modelField.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("the cost model has printed no spout_rec/s: %q", out)
	}
	return strconv.ParseFloat(m[1], 64)
}

// output runs a program and returns what it has printed. The error holds what it
// has complained of.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if err == nil {
		return out, nil
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if said := strings.TrimSpace(string(e.Stderr)); said != "" {
			return nil, fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, said)
		}
	}
	return nil, fmt.Errorf("%s: %w", filepath.Base(c.Path), err)
}
