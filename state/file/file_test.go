package file

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHold(t *testing.T) {
	dir := t.TempDir()
	lock, _, err := Hold(dir)
	require.NoError(t, err)
	_, by, err := Hold(dir)
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, " in process "+strconv.Itoa(os.Getpid()), by)
	require.NoError(t, lock.Close())
	lock, by, err = Hold(dir)
	require.NoError(t, err)
	require.Empty(t, by)
	require.NoError(t, lock.Close())
	_, _, err = Hold(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What cannot be written leaves what was there, and nothing else.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	require.NoError(t, Write(name, []byte("1")))
	require.NoError(t, Write(name, []byte("22")))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "22", string(b))
	full := filepath.Join(dir, "full")
	require.NoError(t, os.MkdirAll(filepath.Join(full, "x"), 0o700))
	require.Error(t, Write(full, []byte("3")), "a directory stays")
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{name, full}, all)
}

// A power is a disk that may lose its power before any call: then it has of a file what
// was synced, and the names that were synced with their directory.
type power struct {
	left   int               // calls until it is lost; less than 0: it stays
	synced map[string]string // what is durable of a file, by the name that it has now
	names  map[string]string // what a name has after the loss
	moved  [][2]string       // renames that are not durable
}

var errPower = errors.New("no power")

func (p *power) step() error {
	if p.left--; p.left == -1 {
		return errPower
	}
	return nil
}

func (p *power) calls() calls {
	return calls{
		sync: func(f *os.File) error {
			if err := p.step(); err != nil {
				return err
			}
			b, err := os.ReadFile(f.Name())
			p.synced[f.Name()] = string(b)
			return err
		},
		rename: func(from, to string) error {
			if err := p.step(); err != nil {
				return err
			}
			p.synced[to] = p.synced[from]
			delete(p.synced, from)
			p.moved = append(p.moved, [2]string{from, to})
			return os.Rename(from, to)
		},
		syncDir: func(string) error {
			if err := p.step(); err != nil {
				return err
			}
			p.settle()
			return nil
		},
	}
}

// settle makes the renames durable.
func (p *power) settle() {
	for _, m := range p.moved {
		p.names[m[1]] = p.synced[m[1]]
	}
	p.moved = nil
}

// Whenever the power is lost, a file is what it was or what it was to become, and the
// second when Write has returned.
func TestWriteIsDurable(t *testing.T) {
	for left := range 4 {
		for _, early := range []bool{false, true} { // a disk may make a rename durable before it is asked to
			p := &power{left: -1, synced: map[string]string{}, names: map[string]string{}}
			name := filepath.Join(t.TempDir(), "record")
			require.NoError(t, write(name, []byte("old"), p.calls()))
			require.Equal(t, "old", p.names[name], "it is durable")
			p.left = left
			err := write(name, []byte("new"), p.calls())
			if early {
				p.settle()
			}
			if left == 3 {
				require.NoError(t, err)
				require.Equal(t, "new", p.names[name], "it is durable")
				continue
			}
			require.ErrorIs(t, err, errPower)
			require.Contains(t, []string{"old", "new"}, p.names[name], "before call %d", left)
		}
	}
}
