package egret

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/egretstream/egret/broker/wire"
)

// Variables that hold tokens if no file is given.
const (
	tokenVariable     = "EGRET_HTTP_TOKEN"
	lookTokenVariable = "EGRET_HTTP_LOOK_TOKEN"
)

// httpOptions are the flags of commands that serve a page. Tokens are no flags: everybody
// on a machine sees those.
type httpOptions struct {
	http             HTTP
	token, lookToken string // files
}

func (o *httpOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.http.Address, "http", "", "serve a page, an API and metrics at this address, as in 127.0.0.1:8080; port 0: any that is free")
	f.StringVar(&o.http.CertFile, "http-cert", "", "PEM file of a certificate, for --http beyond this machine")
	f.StringVar(&o.http.KeyFile, "http-key", "", "and of its key")
	f.StringVar(&o.token, "http-token-file", "", "file with the token of who may do everything there (default: the variable "+tokenVariable+")")
	f.StringVar(&o.lookToken, "http-look-token-file", "", "and with that of who may look (default: the variable "+lookTokenVariable+")")
}

// build returns what the flags are, or every mistake in them.
func (o *httpOptions) build() (HTTP, error) {
	h := o.http
	if h.Address == "" {
		for _, x := range []struct{ flag, value string }{
			{"http-cert", h.CertFile}, {"http-key", h.KeyFile}, {"http-token-file", o.token}, {"http-look-token-file", o.lookToken},
		} {
			if x.value != "" {
				return HTTP{}, fmt.Errorf("--%s is for a page: say where with --http", x.flag)
			}
		}
		return HTTP{}, nil
	}
	var err, lookErr error
	h.Token, err = readToken("http-token-file", o.token, tokenVariable)
	h.LookToken, lookErr = readToken("http-look-token-file", o.lookToken, lookTokenVariable)
	return h, errors.Join(err, lookErr)
}

func readToken(flag, file, variable string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	text, err := wire.ReadPrivate(file)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	text = strings.TrimRight(text, "\r\n")
	if text == "" {
		return "", fmt.Errorf("--%s: %s has no token in its first line", flag, file)
	}
	return text, nil
}
