package egret

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
)

// A page with a certificate of one's own is looked at when it is trusted, and who asks in
// the wrong way hears what to do.
func TestCertificateOfOnesOwn(t *testing.T) {
	for _, name := range []string{httpVariable, nodeVariable, tokenVariable, lookTokenVariable} {
		t.Setenv(name, "")
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testToken {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"no-token","text":"send it in a header"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"nodes":[],"topologies":[]}`)
	})
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	plain := httptest.NewServer(answer)
	defer plain.Close()
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		return filepath.Join(dir, name)
	}
	ca := file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	token, other := file("token", []byte(testToken)), file("other", bytes.Repeat([]byte("x"), 20))
	for _, tt := range []struct {
		line string
		code int
		errs string
	}{
		{"--http " + s.URL + " --token-file " + token + " --ca " + ca, ExitDone, ""},
		{"--http " + s.URL + " --token-file " + token, ExitUnreachable, "(give the certificate, or that of who has signed it, with --ca)"},
		{"--http " + s.URL + " --ca " + ca, ExitRefused, s.URL + ": a token is needed: give its file with --token-file"},
		{"--http " + s.URL + " --token-file " + other + " --ca " + ca, ExitRefused, s.URL + ": it does not know the token of --token-file"},
		{"--http " + s.URL + " --ca " + token, ExitUsage, "token has no certificate as PEM"},
		{"--http " + s.URL + " --ca " + dir + "/nowhere", ExitUsage, "--ca: open "},
		{"--http " + strings.Replace(s.URL, "https", "http", 1), ExitUsage, "has a certificate: use " + s.URL},
		{"--http " + strings.TrimPrefix(s.URL, "https://"), ExitUsage, "has a certificate: use " + s.URL},
		{"--http " + plain.URL + " --ca " + ca, ExitUsage, "--ca is for pages with a certificate"},
		{"--http " + strings.Replace(plain.URL, "http", "https", 1), ExitUnreachable, "(use " + plain.URL + ")"},
		{"--node 127.0.0.1:1 --ca " + ca, ExitUsage, "--ca goes with --http"},
	} {
		code, _, errs := runLine([]*topology.Topology{greet(io.Discard)}, append([]string{"top", "--once"}, strings.Fields(tt.line)...)...)
		require.Equal(t, tt.code, code, "%s: %s", tt.line, errs)
		require.Contains(t, errs, tt.errs)
		require.NotContains(t, errs, testToken)
	}
}
