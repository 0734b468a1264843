// Package wire has the sockets between nodes: one port for everything, TLS from a
// shared secret, and connections that carry the frames of brokers. It is not for use
// outside Egret.
//
//	            +- gossip      Listener(Gossip), Packets()
//	TCP -- Port +- consensus   Listener(Consensus)
//	UDP -/      +- broker      Listener(Broker) --> Conn --frames--> broker
//	            +- control     Listener(Control) <-- Client: commands
//
// With a [Secret] a connection is TLS 1.3 with certificates on both sides, and the
// service is its ALPN protocol. Without one its first byte is the service. Either way
// the listener's first byte is a welcome: so who dials knows that it is through, and
// if not, why. Who has the secret is trusted with everything: a node can make itself a
// certificate with any id.
//
// Datagrams are not protected here: gossip encrypts its own with [Secret.GossipKey].
package wire
