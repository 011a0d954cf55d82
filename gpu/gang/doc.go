// Package gang joins hosts whose devices share one model.
//
// Glossary. A *gang* is the set of hosts of one engine process. Its *leader* is the host where the engine was asked for
// and where rank 0 runs. The others are *members*, each with a *place* from 1 on. The leader *calls*: it listens, and
// the caller passes its *invitation* to other hosts. A member joins, takes its devices and says that it is ready. When
// all are ready, each gets its *orders*, with which its ranks meet the leader's ranks under torchrun.
//
// The connection between member and leader lives as long as the gang. Each side notices at once when the other's
// process ends, and within mostSilence when its host or the network fails. So neither ranks nor leases outlive their
// gang, whichever side dies. With certificates (TLS) it is encrypted, and both sides are hosts of one authority.
// torchrun's rendezvous checks nothing, so it is then on loopback, and a member *forwards* its ranks' connections to
// the leader, which *relays* them. Without certificates a member is identified only by the invitation.
package gang
