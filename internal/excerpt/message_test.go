package excerpt_test

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	const end = "\n\n... [message truncated]"
	tests := map[string]struct{ message, want string }{
		"plain":        {"x", "x"},
		"IPv4":         {"read udp 10.0.0.8:4675->10.0.0.10:53: i/o timeout", "i/o timeout"},
		"IPv6":         {"a: write tcp [::1]:4675->[fe80::1]:443: broken pipe", "a: broken pipe"},
		"dial":         {"dial tcp 10.0.0.8:443: refused", "dial tcp 10.0.0.8:443: refused"},
		"at the limit": {strings.Repeat("a", 32768), strings.Repeat("a", 32768)},
		"too long":     {strings.Repeat("a", 32769), strings.Repeat("a", 32768-len(end)) + end},
		"rune":         {strings.Repeat("ä", 20000), strings.Repeat("ä", (32768-len(end))/2) + end},
		"not UTF-8":    {"a\xffb", "a\uFFFDb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Message(tc.message); got != tc.want {
				t.Errorf("Message = %.80q (%d bytes), want %.80q (%d bytes)", got, len(got), tc.want, len(tc.want))
			}
		})
	}
}
