package wire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
)

const (
	leafLife = 24 * time.Hour
	leafSkew = time.Hour    // how much a peer's clock may be behind
	leafUse  = leafLife / 2 // then the next is made; so a peer's clock may be ahead by the other half

	// Names that a certificate is valid for. A command can not pass for a node.
	nodeName   = "node.egret"
	clientName = "client.egret"
)

// An identity is who this process is in a handshake, and whom it believes. The nil
// identity is that of a process without a secret. Its methods may be called from any
// goroutine.
//
// What it shows of itself is a certificate of its own making, signed with the secret:
// every node has the key of the authority. While there is a previous secret it shows
// also that the authority of the secret is signed by that of the previous one. So who
// has either of them believes it, and nobody has to know what the other has.
type identity struct {
	node      cluster.NodeID // 0: a command
	authority *x509.Certificate
	key       ed25519.PrivateKey // of the authority
	cross     []byte             // the authority, signed by the previous one; nil: there is none
	roots     *x509.CertPool
	now       func() time.Time

	mu      sync.Mutex
	leaf    *tls.Certificate
	renewal time.Time // when the leaf is too old to be shown
}

// newIdentity returns the identity of a node, or of a command if node is 0. Without a
// secret it is nil: who has none can not show who it is.
func newIdentity(secret, previous Secret, node cluster.NodeID) *identity {
	if secret.IsZero() {
		return nil
	}
	id := &identity{node: node, key: secret.keys().authority, roots: x509.NewCertPool(), now: time.Now}
	id.authority = parse(sign(authority(id.key), nil, id.key, id.key))
	id.roots.AddCert(id.authority)
	if !previous.IsZero() && !previous.keys().authority.Equal(id.key) {
		old := previous.keys().authority
		signer := parse(sign(authority(old), nil, old, old))
		id.cross = sign(authority(id.key), signer, id.key, old)
		id.roots.AddCert(signer)
	}
	return id
}

// authority returns the certificate of an authority but for its signature. All of it
// follows from the key, so every node makes the same.
func authority(key ed25519.PrivateKey) *x509.Certificate {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("egret cluster %x", sum[:8])},
		SubjectKeyId:          sum[:20],
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: none
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

// sign returns the certificate with the public half of key, signed by the parent's,
// which is the certificate itself if there is no parent.
func sign(cert, parent *x509.Certificate, key, signer ed25519.PrivateKey) []byte {
	if parent == nil {
		parent = cert
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	if err != nil {
		panic(err) // not of these fields and keys
	}
	return der
}

func parse(der []byte) *x509.Certificate {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err) // we have just made it
	}
	return cert
}

// certificate returns what this process shows of itself.
func (id *identity) certificate() *tls.Certificate {
	id.mu.Lock()
	defer id.mu.Unlock()
	now := id.now()
	if id.leaf != nil && now.Before(id.renewal) && !now.Before(id.leaf.Leaf.NotBefore) { // a clock may be put back
		return id.leaf
	}
	_, key, _ := ed25519.GenerateKey(nil) // never an error
	leaf := &x509.Certificate{
		NotBefore:   now.Add(-leafSkew),
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.node == 0 {
		leaf.DNSNames = []string{clientName}
		leaf.Subject.CommonName = "client"
		leaf.URIs = []*url.URL{{Scheme: "egret", Host: "client"}}
	} else {
		leaf.DNSNames = []string{nodeName}
		leaf.Subject.CommonName = "node " + id.node.String()
		leaf.URIs = []*url.URL{{Scheme: "egret", Host: "node", Path: "/" + id.node.String()}}
		leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der := sign(leaf, id.authority, key, id.key)
	id.leaf = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parse(der)}
	if id.cross != nil {
		id.leaf.Certificate = append(id.leaf.Certificate, id.cross)
	}
	id.renewal = now.Add(leafUse)
	return id.leaf
}

// config returns what both sides of a handshake have in common.
func (id *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		Time:                        id.now,
		SessionTicketsDisabled:      true, // a resumed session would not look at certificates
		DynamicRecordSizingDisabled: true, // frames are long
	}
}

// server returns the listener's side of a handshake for any service.
func (id *identity) server() *tls.Config {
	c := id.config()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs = id.roots
	for s := range services {
		c.NextProtos = append(c.NextProtos, s.protocol())
	}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return id.certificate(), nil }
	c.VerifyConnection = func(state tls.ConnectionState) error {
		node, err := peer(state)
		if err == nil && node == 0 && state.NegotiatedProtocol != Control.protocol() {
			err = errors.New("a command may only use the control service")
		}
		if err == nil && state.NegotiatedProtocol == "" {
			err = errors.New("it does not say which service it wants")
		}
		return err
	}
	return c
}

// client returns the side of who dials a service.
func (id *identity) client(s Service) *tls.Config {
	c := id.config()
	c.RootCAs = id.roots
	c.ServerName = nodeName
	c.NextProtos = []string{s.protocol()}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return id.certificate(), nil }
	c.VerifyConnection = func(state tls.ConnectionState) error {
		_, err := peer(state)
		return err
	}
	return c
}

// peer returns the node that the verified certificate of the other side names, 0 for
// a command.
func peer(state tls.ConnectionState) (node cluster.NodeID, err error) {
	if len(state.PeerCertificates) == 0 {
		return 0, errors.New("there is no certificate")
	}
	uris := state.PeerCertificates[0].URIs
	if len(uris) != 1 || uris[0].Scheme != "egret" {
		return 0, errors.New("the certificate is not one of Egret")
	}
	if uris[0].Host == "client" {
		return 0, nil
	}
	err = node.UnmarshalText([]byte(strings.TrimPrefix(uris[0].Path, "/")))
	if err == nil && (uris[0].Host != "node" || node == 0) {
		err = errors.New("the certificate names no node")
	}
	return node, err
}

// A secured connection is one with TLS. It is not given out as a *tls.Conn: net/http
// closes one of those if its ALPN protocol is not HTTP.
type secured struct{ *tls.Conn }

// Peer returns the node at the other end of a connection of a [Port] or [Client], as
// its certificate says, or 0 if that is a command or there is no secret.
func Peer(c net.Conn) cluster.NodeID {
	t, ok := c.(secured)
	if !ok {
		return 0
	}
	node, _ := peer(t.ConnectionState())
	return node
}
