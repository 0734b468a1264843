package wire

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// shake has a client and a server meet, and returns what each says of the other.
func shake(t *testing.T, client, server *identity, s Service) (ofServer, ofClient cluster.NodeID, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	served := make(chan error, 1)
	go func() {
		c, got, err := server.admit(b)
		if err == nil {
			require.Equal(t, s, got)
			ofClient = Peer(c)
		} else {
			b.Close()
		}
		served <- err
	}()
	c, err := client.introduce(a, s)
	if err == nil {
		ofServer = Peer(c)
	}
	a.Close()
	if e := <-served; err == nil {
		err = e
	}
	return ofServer, ofClient, err
}

func TestPeer(t *testing.T) {
	s := secret(t, newText)
	a, b, command := newIdentity(s, Secret{}, 0xa), newIdentity(s, Secret{}, 0xfedcba9876543210), newIdentity(s, Secret{}, 0)
	for service := range services {
		ofServer, ofClient, err := shake(t, a, b, service)
		require.NoError(t, err)
		require.Equal(t, b.node, ofServer)
		require.Equal(t, a.node, ofClient)
	}
	ofServer, ofClient, err := shake(t, command, b, Control)
	require.NoError(t, err)
	require.Equal(t, b.node, ofServer)
	require.Zero(t, ofClient)
	_, _, err = shake(t, command, b, Consensus)
	require.Error(t, err, "only nodes may")
	_, _, err = shake(t, a, command, Control)
	require.Error(t, err, "a command is no node")
	require.Zero(t, Peer(&net.TCPConn{}))
}

// While a cluster changes its secret, those who have either of them, or both in any
// order, talk to each other, both ways. Those who share none never do.
func TestRotation(t *testing.T) {
	o, n, other := secret(t, oldText), secret(t, newText), secret(t, "the secret of somebody else")
	all := []struct {
		name string
		id   *identity
		has  []string
	}{
		{"old", newIdentity(o, Secret{}, 1), []string{"o"}},
		{"new", newIdentity(n, Secret{}, 2), []string{"n"}},
		{"old and new", newIdentity(o, n, 3), []string{"o", "n"}},
		{"new and old", newIdentity(n, o, 4), []string{"n", "o"}},
		{"new twice", newIdentity(n, n, 5), []string{"n"}},
		{"other", newIdentity(other, Secret{}, 6), []string{"x"}},
	}
	for _, a := range all {
		for _, b := range all {
			t.Run(a.name+" to "+b.name, func(t *testing.T) {
				share := false
				for _, x := range a.has {
					for _, y := range b.has {
						share = share || x == y
					}
				}
				ofServer, ofClient, err := shake(t, a.id, b.id, Broker)
				if !share {
					require.True(t, isUntrusted(err), "%v", err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, b.id.node, ofServer)
				require.Equal(t, a.id.node, ofClient)
			})
		}
	}
}

// A process that runs for long shows certificates that are good for half a day at
// least, and who keeps an old one is refused.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := secret(t, newText)
		a, b := newIdentity(s, Secret{}, 1), newIdentity(s, Secret{}, 2)
		first := a.certificate()
		for range 100 {
			_, _, err := shake(t, a, b, Broker)
			require.NoError(t, err)
			left := time.Until(a.certificate().Leaf.NotAfter)
			require.True(t, left > leafLife/2 && left <= leafLife, "%v", left)
			time.Sleep(time.Hour)
		}
		require.NotEqual(t, first.Leaf.Raw, a.certificate().Leaf.Raw)
		require.Same(t, a.certificate(), a.certificate())

		a.leaf, a.renewal = first, time.Now().Add(time.Hour)
		for _, pair := range [][2]*identity{{a, b}, {b, a}} {
			_, _, err := shake(t, pair[0], pair[1], Broker)
			require.Error(t, err, "the certificate is over")
			require.False(t, isUntrusted(err), "that is not a wrong secret: %v", err)
		}
	})
}

func TestClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := secret(t, newText)
		for _, tt := range []struct {
			ahead time.Duration
			ok    bool
		}{
			{0, true}, {59 * time.Minute, true}, {-59 * time.Minute, true},
			{61 * time.Minute, false}, {-61 * time.Minute, false}, {-30 * 24 * time.Hour, false},
		} {
			a, b := newIdentity(s, Secret{}, 1), newIdentity(s, Secret{}, 2)
			b.now = func() time.Time { return time.Now().Add(tt.ahead) }
			_, _, err := shake(t, a, b, Broker)
			if tt.ok {
				require.NoError(t, err)
				continue
			}
			require.Error(t, err)
			require.ErrorContains(t, explain(t.Context(), Broker, "b:1", err), "the clocks of the two machines are more than an hour apart")
			// A clock that was wrong and is set right makes a new certificate.
			b.now = time.Now
			_, _, err = shake(t, a, b, Broker)
			require.NoError(t, err)
		}
	})
}

// Names in a certificate that is signed as it should be, but is none of Egret's.
func TestStrangeNames(t *testing.T) {
	for _, text := range []string{"", "egret://node", "egret://node/", "egret://node/1", "egret://node/0000000000000000",
		"egret://other/00000000000000aa", "https://node/00000000000000aa", "egret://node/00000000000000aa/b"} {
		cert := &x509.Certificate{}
		if text != "" {
			u, err := url.Parse(text)
			require.NoError(t, err)
			cert.URIs = []*url.URL{u}
		}
		_, err := peer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}})
		require.Error(t, err, text)
	}
	_, err := peer(tls.ConnectionState{})
	require.Error(t, err)
	u, _ := url.Parse("egret://node/00000000000000aa")
	node, err := peer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{u}}}})
	require.NoError(t, err)
	require.EqualValues(t, 0xaa, node)
}
