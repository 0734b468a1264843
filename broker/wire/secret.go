package wire

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// SecretVariable is the environment variable that a secret is taken from if no file
// is given.
const SecretVariable = "EGRET_SECRET"

const (
	leastSecret = 16   // bytes
	mostSecret  = 4096 // bytes; more is some other file
)

// A Secret is what the nodes of a cluster and its commands have in common. The zero
// Secret is none. It does not keep the text, and printing it shows nothing.
type Secret struct{ keys func() *keys }

// keys are what is derived from the text. They are behind a function because fmt looks
// into everything else, also into what can not be exported, and where it does not ask
// for String.
type keys struct {
	gossip    []byte
	authority ed25519.PrivateKey
}

// NewSecret derives keys from text, which is used as it is and has at least 16 bytes.
// It should be random: keys are not stretched, and whoever connects to a node sees a
// signature that guesses can be tried on.
func NewSecret(text string) (Secret, error) {
	if len(text) < leastSecret {
		return Secret{}, fmt.Errorf("a secret of %d bytes can be guessed: it must have at least %d, best random ones (openssl rand -base64 32)", len(text), leastSecret)
	}
	if len(text) > mostSecret {
		return Secret{}, fmt.Errorf("a secret has at most %d bytes", mostSecret)
	}
	derive := func(what string) []byte {
		key, err := hkdf.Key(sha256.New, []byte(text), nil, "egret/1 "+what, 32)
		if err != nil {
			panic(err) // only a length that is too great
		}
		return key
	}
	k := &keys{
		gossip:    derive("gossip"),
		authority: ed25519.NewKeyFromSeed(derive("certificate authority")),
	}
	return Secret{func() *keys { return k }}, nil
}

// ReadSecret reads a secret from a file, without the line break at its end, or from
// EGRET_SECRET if file is "". Without either it returns the zero Secret. A file that
// others may read is refused.
func ReadSecret(file string) (Secret, error) {
	if file == "" {
		text, ok := os.LookupEnv(SecretVariable)
		if !ok {
			return Secret{}, nil
		}
		s, err := NewSecret(text)
		if err != nil {
			return Secret{}, fmt.Errorf("variable %s: %w", SecretVariable, err)
		}
		return s, nil
	}
	text, err := ReadPrivate(file)
	if err != nil {
		return Secret{}, fmt.Errorf("file of the secret: %w", err)
	}
	s, err := NewSecret(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"))
	if err != nil {
		return Secret{}, fmt.Errorf("file of the secret: %s: %w", file, err)
	}
	return s, nil
}

// ReadPrivate reads a short text from a file, and refuses one that others may read.
func ReadPrivate(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s is a directory", file)
	}
	// A group may read it: that is how container platforms hand out secrets. On Windows
	// the bits say nothing.
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("%s can be read or written by others (mode %04o): whoever reads it may do what its owner may; chmod 600 %[1]s", file, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostSecret+3))
	if err != nil {
		return "", err
	}
	if len(text) == 0 {
		return "", errors.New(file + " is empty")
	}
	return string(text), nil
}

// IsZero reports whether s is no secret.
func (s Secret) IsZero() bool { return s.keys == nil }

// GossipKey returns the 32 bytes that gossip is encrypted with, nil for no secret.
func (s Secret) GossipKey() []byte {
	if s.keys == nil {
		return nil
	}
	return s.keys().gossip
}

// String says only whether there is one.
func (s Secret) String() string {
	if s.keys == nil {
		return "no secret"
	}
	return "a secret"
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }
