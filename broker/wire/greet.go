package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
)

// ErrSecret reports that two sides do not have the same secret, or only one has any.
var ErrSecret = errors.New("not the same secret")

// admit hears what a connection wants and who it is, and welcomes it. What it returns
// belongs to the service. It does not close raw, which has a deadline.
func (id *identity) admit(raw net.Conn) (net.Conn, Service, error) {
	var first [1]byte
	if _, err := io.ReadFull(raw, first[:]); err != nil {
		return nil, 0, fmt.Errorf("it said nothing: %w", err)
	}
	if id == nil {
		return admitPlain(raw, first[0])
	}
	return id.admitTLS(raw, first[0])
}

func admitPlain(raw net.Conn, first byte) (net.Conn, Service, error) {
	if first == tlsHandshake {
		io.WriteString(raw, noSecret)
		hangUp(raw)
		return nil, 0, fmt.Errorf("%w: it has one, and this node has none", ErrSecret)
	}
	s, ok := serviceOf(first)
	if !ok {
		return nil, 0, fmt.Errorf("it is not of Egret: it begins with byte %#02x", first)
	}
	if _, err := raw.Write([]byte{welcome}); err != nil {
		return nil, 0, err
	}
	return raw, s, nil
}

func (id *identity) admitTLS(raw net.Conn, first byte) (net.Conn, Service, error) {
	if first != tlsHandshake {
		if _, ok := serviceOf(first); !ok {
			return nil, 0, fmt.Errorf("it is not of Egret: it begins with byte %#02x", first)
		}
		raw.Write([]byte{needsSecret})
		return nil, 0, fmt.Errorf("%w: it has none, and this node has one", ErrSecret)
	}
	c := tls.Server(&begun{Conn: raw, first: []byte{first}}, id.server())
	if err := c.Handshake(); err != nil {
		if isUntrusted(err) {
			err = fmt.Errorf("%w: it has another one than this node (%v)", ErrSecret, err)
		}
		return nil, 0, err
	}
	for s := range services {
		if c.ConnectionState().NegotiatedProtocol == s.protocol() {
			_, err := c.Write([]byte{welcome})
			return secured{c}, s, err
		}
	}
	return nil, 0, errors.New("it wants no service that there is") // the handshake sees to that
}

// A begun connection has its first bytes read already.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(into []byte) (int, error) {
	if len(b.first) == 0 {
		return b.Conn.Read(into)
	}
	n := copy(into, b.first)
	b.first = b.first[n:]
	return n, nil
}

// hangUp lets the other side read what was written: a connection that is closed while
// there is something unread is reset, and the answer is lost.
func hangUp(raw net.Conn) {
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		io.CopyN(io.Discard, raw, 64<<10)
	}
}

// isUntrusted reports whether a handshake has ended because one side does not believe
// the other's authority.
func isUntrusted(err error) bool {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	return isAlert(err, alertBadCertificate) || isAlert(err, alertUnknownCA)
}

// Alerts that the other side ends a handshake with (RFC 8446, 6.2).
const (
	alertBadCertificate     tls.AlertError = 42
	alertCertificateExpired tls.AlertError = 45
	alertUnknownCA          tls.AlertError = 48
	alertNoProtocol         tls.AlertError = 120
)

// isAlert reports whether err is an alert of the other side. Package tls has it as an
// error of a type that is not exported, with the same text.
func isAlert(err error, alert tls.AlertError) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && op.Err != nil && op.Err.Error() == alert.Error()
}
