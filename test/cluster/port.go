package cluster

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// reservedPort is a TCP port that is bound but not listened on, so that no
// other program is given it. A server that sets SO_REUSEPORT can bind it too,
// and because the reservation does not listen, every connection is the server's.
// Choosing a free port and closing it again would leave a gap in which another
// cluster can choose the same.
type reservedPort struct {
	socket int
	number int
}

// reservePort reserves a port that is free on the address.
func reservePort(address netip.Addr) (*reservedPort, error) {
	port, err := bindAnyPort(address)
	if err != nil {
		return nil, fmt.Errorf("reserving a port on %s: %w", address, err)
	}
	return port, nil
}

func bindAnyPort(address netip.Addr) (*reservedPort, error) {
	family, anyPort := socketAddress(address)
	socket, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	port := &reservedPort{socket: socket}
	unix.CloseOnExec(socket)
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		port.release()
		return nil, err
	}
	if err := unix.Bind(socket, anyPort); err != nil {
		port.release()
		return nil, err
	}
	if port.number, err = boundPort(socket); err != nil {
		port.release()
		return nil, err
	}
	return port, nil
}

// socketAddress is port zero of the address: the kernel chooses.
func socketAddress(address netip.Addr) (int, unix.Sockaddr) {
	if address.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Addr: address.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Addr: address.As16()}
}

func boundPort(socket int) (int, error) {
	name, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	switch address := name.(type) {
	case *unix.SockaddrInet4:
		return address.Port, nil
	case *unix.SockaddrInet6:
		return address.Port, nil
	default:
		return 0, unix.EAFNOSUPPORT
	}
}

func (p *reservedPort) release() {
	_ = unix.Close(p.socket) // nothing was written to it
}
