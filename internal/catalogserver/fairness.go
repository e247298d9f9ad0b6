package catalogserver

import (
	"net"
	"net/netip"
	"time"
)

// networkBits is the part of an IPv6 address that a site gives to one host or to
// all pods of one node: behind it, addresses cost nothing.
const networkBits = 64

// peer tells who asks. The zero value stands for all that have no IP address.
type peer struct {
	address netip.Addr
	// network is the address alone for IPv4.
	network netip.Prefix
}

// peerAt returns the peer with that address.
func peerAt(remote net.Addr) peer {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return peer{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = networkBits
	}
	// It fails for invalid addresses only, which are all alike.
	network, _ := address.Prefix(bits)
	return peer{address: address, network: network}
}

// place is one of a bounded number that peers share.
type place struct {
	peer peer
	// unused is for how long it has been of no use to the peer.
	unused time.Duration
	// kept says that the peer does not lose it to another one.
	kept bool
}

// bounds are on places that peers share.
type bounds struct {
	// total is the number of places, and perNetwork how many one network may have.
	total, perNetwork int
	// grace is for how long a place may be unused while another peer waits for it.
	grace time.Duration
}

// none is the number of no place.
const none = -1

// admit decides whether another peer gets a place, and which of the places is
// taken away for it, or none. While there is room, nobody loses a place. Otherwise
// a peer gets
//
//   - one that is unused, of its own or of somebody who has more places than it;
//   - one of somebody who will still not have fewer than it.
//
// It loses nothing to those who have as many. Networks compare by their places, and
// within a network addresses do.
func (b bounds) admit(places []place, c peer) (taken int, ok bool) {
	have := count(places)
	full, crowded := len(places) >= b.total, have.byNetwork[c.network] >= b.perNetwork
	if !full && !crowded {
		return none, true
	}
	taken = none
	var best claim
	for i, p := range places {
		if p.kept || crowded && p.peer.network != c.network {
			continue
		}
		mine, theirs := have.compare(c, p.peer)
		claimed := claim{
			unused: p.unused >= b.grace && (theirs > mine || p.peer == c),
			theirs: theirs, since: p.unused,
		}
		if (claimed.unused || theirs > mine+1) && (taken == none || claimed.over(best)) {
			taken, best = i, claimed
		}
	}
	return taken, taken != none
}

// claim is the reason to take a place away.
type claim struct {
	unused bool
	// theirs is how many places those have who lose it.
	theirs int
	since  time.Duration
}

// over reports whether c is the better reason.
func (c claim) over(other claim) bool {
	if c.unused != other.unused {
		return c.unused
	}
	if c.theirs != other.theirs {
		return c.theirs > other.theirs
	}
	return c.since > other.since
}

// shares are the numbers of places that peers have.
type shares struct {
	byNetwork map[netip.Prefix]int
	byAddress map[netip.Addr]int
}

func count(places []place) shares {
	s := shares{byNetwork: map[netip.Prefix]int{}, byAddress: map[netip.Addr]int{}}
	for _, p := range places {
		s.byNetwork[p.peer.network]++
		s.byAddress[p.peer.address]++
	}
	return s
}

// compare returns the places of two peers: of their networks, or of their
// addresses where the network is the same.
func (s shares) compare(c, other peer) (mine, theirs int) {
	if c.network != other.network {
		return s.byNetwork[c.network], s.byNetwork[other.network]
	}
	return s.byAddress[c.address], s.byAddress[other.address]
}
