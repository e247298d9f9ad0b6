package catalogserver

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

// of makes the peer with that address.
func of(address string) peer {
	return peerAt(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1)))
}

func TestPeerAt(t *testing.T) {
	t.Parallel()
	for address, network := range map[string]string{
		"10.0.0.1":              "10.0.0.1/32",
		"::ffff:10.0.0.1":       "10.0.0.1/32",
		"fd00:1:2:3::1":         "fd00:1:2:3::/64",
		"fd00:1:2:3:ffff::ffff": "fd00:1:2:3::/64",
		"fe80::1%eth0":          "fe80::/64",
	} {
		if got := of(address); got.network.String() != network {
			t.Errorf("%s: got network %s, want %s", address, got.network, network)
		}
	}
	if got := peerAt(&net.UnixAddr{}); got != (peer{}) {
		t.Errorf("got %v of no address", got)
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	const a, b, c, d = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
	const v6, v6Near, v6Far = "fd00::1", "fd00::2", "fd00:0:0:1::1"
	used := func(address string) place { return place{peer: of(address)} }
	idle := func(address string, seconds int) place {
		return place{peer: of(address), unused: time.Duration(seconds) * time.Second}
	}
	kept := func(address string) place { return place{peer: of(address), unused: time.Hour, kept: true} }
	places := func(p ...place) []place { return p }
	limits := bounds{total: 4, perNetwork: 3, grace: time.Second}
	tests := map[string]struct {
		places  []place
		comes   string
		taken   int
		refused bool
	}{
		"empty":                                  {nil, a, none, false},
		"room":                                   {places(idle(a, 9), idle(a, 9), idle(b, 9)), a, none, false},
		"as many as one may have":                {places(used(a), used(a), used(a)), a, none, true},
		"its own that is unused":                 {places(idle(a, 1), idle(a, 2), used(a)), a, 1, false},
		"its own that is hardly unused":          {places(idle(a, 0), used(a), used(a)), a, none, true},
		"not of another for who has the most":    {places(used(a), used(a), used(a), idle(b, 9)), a, none, true},
		"of who has more":                        {places(used(a), used(a), used(b), used(c)), d, 0, false},
		"unused of who has more":                 {places(used(a), idle(a, 2), used(b), used(c)), d, 1, false},
		"unused rather than used":                {places(used(a), used(a), used(a), idle(b, 1)), d, 3, false},
		"of who has most":                        {places(idle(b, 9), idle(a, 1), idle(a, 2), used(c)), d, 2, false},
		"used ones of those who have as many":    {places(used(a), used(a), used(b), used(b)), a, none, true},
		"used ones of those who have one more":   {places(used(a), used(a), used(b), used(c)), b, none, true},
		"unused ones of who has one more":        {places(used(a), idle(a, 1), used(b), used(c)), b, 1, false},
		"unused ones of who has as many":         {places(used(a), used(a), idle(b, 9), idle(b, 8)), a, none, true},
		"many addresses":                         {places(used(a), idle(b, 1), idle(c, 3), idle(d, 2)), "10.0.0.5", 2, false},
		"many addresses that use what they have": {places(used(a), used(b), used(c), used(d)), "10.0.0.5", none, true},
		"kept":                                   {places(kept(a), kept(a), kept(a), kept(b)), c, none, true},
		"kept count":                             {places(kept(a), kept(a), used(a), kept(b)), c, 2, false},
		"a network as a whole":                   {places(used(v6), used(v6), used(v6Near)), v6Near, none, true},
		"addresses of a network":                 {places(used(v6), used(v6), used(v6)), v6Near, 0, false},
		"another network":                        {places(used(v6), used(v6), used(v6Near)), v6Far, none, false},
		"of the larger network":                  {places(used(v6), used(v6Near), used(a), used(b)), v6Far, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, ok := limits.admit(tt.places, of(tt.comes))
			if taken != tt.taken || ok == tt.refused {
				t.Errorf("got %d, %t, want %d, %t", taken, ok, tt.taken, !tt.refused)
			}
		})
	}
}

// However many ask, those who keep what they have lose nothing to them beyond an
// equal share, and whoever comes first from an address gets a place.
func TestSharesAreFair(t *testing.T) {
	t.Parallel()
	limits := bounds{total: 12, perNetwork: 8, grace: time.Second}
	var places []place
	ask := func(address string) bool {
		taken, ok := limits.admit(places, of(address))
		switch {
		case !ok:
			return false
		case taken != none:
			places[taken] = place{peer: of(address)}
		default:
			places = append(places, place{peer: of(address)})
		}
		return true
	}
	for range 4000 {
		ask("10.0.0.1")
	}
	for i := range 3 {
		for range 100 {
			ask(fmt.Sprintf("10.0.1.%d", i))
		}
	}
	for address, n := range count(places).byAddress {
		if n != 3 {
			t.Errorf("%s has %d places of %d", address, n, limits.total)
		}
	}
	for i := range 8 {
		if address := fmt.Sprintf("10.0.2.%d", i); !ask(address) {
			t.Errorf("%s got nothing", address)
		}
	}
	if ask("10.0.0.1") && len(places) > limits.total {
		t.Errorf("there are %d places of %d", len(places), limits.total)
	}
}
