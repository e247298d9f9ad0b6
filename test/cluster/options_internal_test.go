package cluster

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsMerge(t *testing.T) {
	t.Parallel()
	defaults := Flags{"kept": "1", "replaced": "2"}
	got := defaults.merged(Flags{"replaced": "3", "added": "4"}).arguments()
	want := []string{"--added=4", "--kept=1", "--replaced=3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if defaults["replaced"] != "2" {
		t.Error("merging changed the flags merged into")
	}
	if got := defaults.merged(nil).arguments(); len(got) != 2 {
		t.Errorf("got %v after merging nothing", got)
	}
}

func TestServerAddresses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flags Flags
		want  []string
		err   error
	}{
		"as by default": {
			flags: apiServerFlags(&workDir{}, 1),
			want:  []string{"127.0.0.1", "10.0.0.1", "127.0.0.1", "127.0.0.1"},
		},
		"for a node in a network of its own": {
			flags: apiServerFlags(&workDir{}, 1).merged(Flags{
				"advertise-address": "192.0.2.7", "bind-address": "0.0.0.0",
				"service-cluster-ip-range": "198.51.100.128/25,2001:db8::/112",
			}),
			want: []string{"127.0.0.1", "198.51.100.129", "192.0.2.7", "0.0.0.0"},
		},
		"with a range that is none": {
			flags: apiServerFlags(&workDir{}, 1).merged(Flags{"service-cluster-ip-range": "10.0.0.0"}),
			err:   ErrInvalidOptions,
		},
		"with a name for an address": {
			flags: apiServerFlags(&workDir{}, 1).merged(Flags{"advertise-address": "localhost"}),
			err:   ErrInvalidOptions,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses, err := serverAddresses(test.flags)
			if !errors.Is(err, test.err) {
				t.Fatalf("got error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, texts(addresses)); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func texts(addresses []netip.Addr) []string {
	var found []string
	for _, address := range addresses {
		found = append(found, address.String())
	}
	return found
}
