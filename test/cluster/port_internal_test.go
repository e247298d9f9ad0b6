package cluster

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReservedPortIsForThoseWhoShare(t *testing.T) {
	t.Parallel()
	for _, address := range []netip.Addr{loopback, netip.IPv6Loopback()} {
		t.Run(address.String(), func(t *testing.T) {
			t.Parallel()
			port, err := reservePort(address)
			if err != nil {
				t.Skipf("address is not there: %v", err)
			}
			t.Cleanup(port.release)
			at := net.JoinHostPort(address.String(), strconv.Itoa(port.number))

			var exclusive net.ListenConfig
			if listener, err := exclusive.Listen(t.Context(), "tcp", at); err == nil {
				_ = listener.Close()
				t.Error("a server that shares no ports got the reserved one")
			}
			sharing := net.ListenConfig{Control: sharePort}
			listener, err := sharing.Listen(t.Context(), "tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			wantAllConnections(t, listener)
		})
	}
}

// wantAllConnections wants none of them to end at the reservation.
func wantAllConnections(t *testing.T, listener net.Listener) {
	t.Helper()
	var dialer net.Dialer
	for range 20 {
		dialed, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = accepted.Close()
		_ = dialed.Close()
	}
}

func TestReservedPortsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port, err := reservePort(loopback)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(port.release)
		if seen[port.number] {
			t.Fatalf("port %d was reserved twice", port.number)
		}
		seen[port.number] = true
	}
}

func TestReservePortNeedsAnAddressOfThisHost(t *testing.T) {
	t.Parallel()
	if port, err := reservePort(netip.MustParseAddr("192.0.2.1")); err == nil {
		port.release()
		t.Error("reserved a port on an address of documentation")
	}
}

// sharePort is what a server does that permits port sharing.
func sharePort(_, _ string, connection syscall.RawConn) error {
	var err error
	if controlErr := connection.Control(func(socket uintptr) {
		err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); controlErr != nil {
		return controlErr
	}
	return err
}
