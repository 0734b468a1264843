package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	oldText = "the old secret of sixteen bytes and more"
	newText = "the new secret of sixteen bytes and more"
)

func secret(t testing.TB, text string) Secret {
	t.Helper()
	if text == "" {
		return Secret{}
	}
	s, err := NewSecret(text)
	require.NoError(t, err)
	return s
}

// Nodes of different versions of Egret must derive the same, for ever.
func TestDerived(t *testing.T) {
	s := secret(t, newText)
	require.Equal(t, "0d643a9e5d08d64b03d25c9c439341988f2ff12c01158c4ec570778b54f6085d", hex.EncodeToString(s.GossipKey()))
	id := newIdentity(s, Secret{}, 1)
	sum := sha256.Sum256(id.authority.Raw)
	require.Equal(t, "0427830bddc9159919d013311e57427349803956bc6fc0fb0a041e4d1061417a", hex.EncodeToString(sum[:]))
	again := newIdentity(secret(t, newText), secret(t, oldText), 2)
	require.Equal(t, id.authority.Raw, again.authority.Raw)
	require.NotEqual(t, s.GossipKey(), secret(t, oldText).GossipKey())
	require.Nil(t, Secret{}.GossipKey())
}

func TestShortSecret(t *testing.T) {
	_, err := NewSecret("fifteen bytes!!")
	require.ErrorContains(t, err, "a secret of 15 bytes can be guessed: it must have at least 16")
	require.NotContains(t, err.Error(), "fifteen")
	_, err = NewSecret(strings.Repeat("x", mostSecret+1))
	require.ErrorContains(t, err, "at most 4096")
	s, err := NewSecret("sixteen bytes!!!")
	require.NoError(t, err)
	require.False(t, s.IsZero())
	require.True(t, Secret{}.IsZero())
}

// A secret must never be seen, however it is printed and in whatever it lies. The same
// goes for what is derived from it.
func TestSecretIsNotPrinted(t *testing.T) {
	s := secret(t, newText)
	var out strings.Builder
	type hidden struct{ s Secret }
	config := Config{Secret: s, Previous: s}
	for _, v := range []any{s, &s, config, &config, hidden{s}, &hidden{s}, []Secret{s}, map[string]any{"s": hidden{s}}} {
		fmt.Fprintf(&out, "%v %+v %#v %s %q %x %d\n", v, v, v, v, v, v, v)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(b)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
	}
	require.Contains(t, out.String(), "a secret")
	keys := [][]byte{[]byte(newText), s.keys().gossip, s.keys().authority.Seed()}
	for _, k := range keys {
		for _, form := range []string{string(k), fmt.Sprintf("%x", k), fmt.Sprintf("%d", k[:4]), strings.Trim(fmt.Sprint(k[:4]), "[]")} {
			require.NotContains(t, out.String(), form)
		}
	}
	require.Equal(t, "no secret", fmt.Sprint(Secret{}))
}

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	want := secret(t, newText).GossipKey()
	for _, tt := range []struct {
		name, text string
		mode       fs.FileMode
		err        string
	}{
		{"plain", newText, 0o600, ""},
		{"a line", newText + "\n", 0o400, ""},
		{"a line of Windows", newText + "\r\n", 0o600, ""},
		{"for a group", newText, 0o640, ""},
		{"for all", newText, 0o644, "can be read or written by others (mode 0644): whoever reads it may do what its owner may; chmod 600 "},
		{"written by a group", newText, 0o660, "by others (mode 0660)"},
		{"empty", "", 0o600, "is empty"},
		{"only a line", "\n", 0o600, "a secret of 0 bytes"},
		{"short", "short\n", 0o600, "a secret of 5 bytes"},
		{"long", strings.Repeat("x", 1<<20), 0o600, "at most 4096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.mode&0o027 != 0 {
				tt.err = ""
			}
			file := filepath.Join(dir, tt.name)
			require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
			require.NoError(t, os.Chmod(file, tt.mode))
			s, err := ReadSecret(file)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.ErrorContains(t, err, file)
				require.NotContains(t, err.Error(), newText)
				require.True(t, s.IsZero())
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, s.GossipKey())
		})
	}
	s, err := ReadSecret(filepath.Join(dir, "two lines"))
	require.True(t, errors.Is(err, fs.ErrNotExist) && s.IsZero(), "%v", err)
	_, err = ReadSecret(dir)
	require.ErrorContains(t, err, "is a directory")
}

func TestReadSecretOfVariable(t *testing.T) {
	t.Setenv(SecretVariable, newText)
	s, err := ReadSecret("")
	require.NoError(t, err)
	require.Equal(t, secret(t, newText).GossipKey(), s.GossipKey())
	t.Setenv(SecretVariable, "") // most likely a mistake, and not a wish to do without
	_, err = ReadSecret("")
	require.ErrorContains(t, err, "variable EGRET_SECRET: a secret of 0 bytes")
	require.NoError(t, os.Unsetenv(SecretVariable))
	s, err = ReadSecret("")
	require.NoError(t, err)
	require.True(t, s.IsZero())
}
