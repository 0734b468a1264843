package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// ErrNobody reports that a machine has answered that no process listens on the port:
// the one that did is gone, or was never there.
var ErrNobody = errors.New("nobody listens there")

// dialTime is for the connection to come about and the handshake, in all.
const dialTime = 10 * time.Second

// A Client connects to the control service of nodes without being one. Its method may
// be called from any goroutine.
type Client struct{ identity *identity }

// NewClient returns a client. Without a secret it reaches only nodes that have none.
func NewClient(secret, previous Secret) *Client {
	return &Client{newIdentity(secret, previous, 0)}
}

// Dial connects to the control service of the node at addr.
func (c *Client) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.identity.dial(ctx, Control, addr)
}

// Dial connects to a service of the node at addr, and returns when that has welcomed
// it, within 10 s. The error says what was dialled and what may be done; it is ErrNobody
// or ErrSecret if it is one of these.
func (p *Port) Dial(ctx context.Context, s Service, addr string) (net.Conn, error) {
	return p.identity.dial(ctx, s, addr)
}

func (id *identity) dial(ctx context.Context, s Service, addr string) (net.Conn, error) {
	within, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := dialTCP(within, addr)
	if err != nil {
		return nil, explain(ctx, s, addr, err)
	}
	// The deadline of a connection in the past wakes whoever waits for it.
	stop := context.AfterFunc(within, func() { raw.SetDeadline(time.Unix(1, 0)) })
	c, err := id.introduce(raw, s)
	if !stop() && err == nil {
		err = context.Cause(within)
	}
	if err != nil {
		raw.Close()
		return nil, explain(ctx, s, addr, err)
	}
	return c, nil
}

// introduce says what is wanted and waits for the welcome.
func (id *identity) introduce(raw net.Conn, s Service) (net.Conn, error) {
	c := raw
	if id == nil {
		if _, err := raw.Write([]byte{s.first()}); err != nil {
			return nil, err
		}
	} else {
		t := tls.Client(raw, id.client(s))
		if err := t.Handshake(); err != nil {
			return nil, err
		}
		c = secured{t}
	}
	// In TLS 1.3 the other side looks at our certificate after the handshake has ended
	// here, so an answer is needed anyway.
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return nil, err
	}
	switch answer[0] {
	case welcome:
		return c, nil
	case needsSecret:
		return nil, errNeeds
	}
	return nil, errStranger
}

var (
	errNeeds    = errors.New("it has a secret, and there is none here")
	errStranger = errors.New("it is not a node of Egret, or of another version")
)

// explain makes an error for people of what went wrong.
func explain(ctx context.Context, s Service, addr string, err error) error {
	say := func(format string, args ...any) error {
		return fmt.Errorf("connect to %s (%s): "+format, append([]any{addr, s}, args...)...)
	}
	header, isHeader := errors.AsType[tls.RecordHeaderError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil:
		return say("%w", context.Cause(ctx))
	case errors.Is(err, syscall.ECONNREFUSED):
		return say("%w: is the node running, and is this its address? (%w)", ErrNobody, err)
	case errors.Is(err, errNeeds):
		return say("%w: the node has one, and there is none here: set %s, or name the file of the secret", ErrSecret, SecretVariable)
	case isHeader && string(header.RecordHeader[:]) == noSecret[:len(header.RecordHeader)]:
		return say("%w: the node has none, and there is one here: start it with the same secret, or do without one here", ErrSecret)
	case isUntrusted(err):
		return say("%w: the node has another one: give all nodes and commands the same", ErrSecret)
	case isInvalid && invalid.Reason == x509.Expired, isAlert(err, alertCertificateExpired):
		return say("a certificate is not valid at this time: the clocks of the two machines are more than an hour apart: set them (%w)", err)
	case isAlert(err, alertNoProtocol):
		return say("the node does not know this service: it is another version of Egret (%w)", err)
	case isHeader, errors.Is(err, errStranger):
		return say("%w", errStranger)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return say("it was closed before there was an answer: the node is stopping, or it is not one of Egret (%w)", err)
	case isNet && netErr.Timeout():
		return say("no answer: is this the address of a node, and does a firewall let it through? (%w)", err)
	}
	return say("%w", err)
}
