package excerpt_test

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, text, want string }{
		"dial": {
			reason: "addresses change with every pod",
			text:   `Get "https://registry.test/v2/": dial tcp 10.1.2.3:443: connect: connection refused`,
			want:   `Get "https://registry.test/v2/": dial tcp: connect: connection refused`,
		},
		"dial IPv6": {reason: "likewise", text: "dial tcp [::1]:5000: connect: connection refused", want: "dial tcp: connect: connection refused"},
		"read": {
			reason: "the local port changes with every attempt",
			text:   "read tcp 10.0.0.1:54321->10.0.0.2:443: read: connection reset by peer",
			want:   "read tcp: read: connection reset by peer",
		},
		"lookup": {
			reason: "the resolver's address is of no use, the name is",
			text:   "dial tcp: lookup registry.test on 10.96.0.10:53: no such host",
			want:   "dial tcp: lookup registry.test: no such host",
		},
		"signed URL": {
			reason: "the query is a credential",
			text:   `Get "https://bucket.test/blob?X-Amz-Signature=abc&x=y": EOF`,
			want:   `Get "https://bucket.test/blob": EOF`,
		},
		"user information": {reason: "a credential", text: "proxy http://user:pa55@proxy.test:3128 failed", want: "proxy http://proxy.test:3128 failed"},
		"retry statistics": {
			reason: "times change with every attempt",
			text:   "(heuristic tuning data: total 100 @1.2 ms, last retry 100 @0.1 ms, last progress @ 1 ms): unexpected EOF",
			want:   "unexpected EOF",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Scrub(tc.text); got != tc.want {
				t.Errorf("Scrub(%q) = %q, want %q (%s)", tc.text, got, tc.want, tc.reason)
			}
		})
	}
}
