package diskspace

import (
	"fmt"
	"sync"
)

// blockBytes is what a file system takes for the least of files and directories.
const blockBytes = 4 << 10

// Blocks is what a file of a size takes on disk, in bytes.
func Blocks(size int64) int64 {
	return max(1, (size+blockBytes-1)/blockBytes) * blockBytes
}

// FullError says that there is no space left.
type FullError struct {
	// What the space is for, in the plural, such as "catalogs".
	What string
	// Limit is all of it in bytes.
	Limit int64
}

func (e *FullError) Error() string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%s may take %d MiB on disk, and what there is leaves no space for more", e.What, e.Limit/mebibyte)
}

// Config is what a [Space] is made from.
type Config struct {
	// What the space is for, in the plural, for messages.
	What string
	// Bytes that all holdings together may have.
	Bytes int64
	// Shares is the number of holdings for which Share bytes each are set aside, if
	// there are as many: who comes when all are in use has none. All shares together
	// are at most Bytes.
	Shares int
	Share  int64
}

// Space is what all holdings together may take. It is safe for concurrent use.
type Space struct {
	config Config

	mu     sync.Mutex
	shares int   // not in use
	common int64 // left of what is beyond the shares; negative if more was adopted
	used   int64 // of all holdings together
}

// New returns a space that nobody holds anything of.
func New(config Config) *Space {
	return &Space{config: config, shares: config.Shares, common: config.Bytes - int64(config.Shares)*config.Share}
}

// Hold returns a holding of nothing yet, with a share if there is one left.
func (s *Space) Hold() *Holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &Holding{space: s}
	if s.shares > 0 {
		s.shares--
		h.share = s.config.Share
		h.shared = true
	}
	return h
}

// Holding is what one of those who share a [Space] has of it.
type Holding struct {
	space  *Space
	share  int64
	shared bool
	size   int64
}

// beyond the share, of a holding of that size.
func (h *Holding) beyond(size int64) int64 { return max(0, size-h.share) }

// Take adds bytes to the holding, or returns a [*FullError] and adds none.
func (h *Holding) Take(bytes int64) error {
	h.space.mu.Lock()
	defer h.space.mu.Unlock()
	return h.resize(h.size + bytes)
}

// Give gives back bytes of those that were taken.
func (h *Holding) Give(bytes int64) {
	h.space.mu.Lock()
	defer h.space.mu.Unlock()
	_ = h.resize(h.size - bytes) // less can always be had
}

// Resize makes the holding one of that size, or returns a [*FullError] and leaves it
// as it is. A smaller one can always be had.
func (h *Holding) Resize(size int64) error {
	h.space.mu.Lock()
	defer h.space.mu.Unlock()
	return h.resize(size)
}

func (h *Holding) resize(size int64) error {
	more := h.beyond(size) - h.beyond(h.size)
	if more > 0 && more > h.space.common {
		return &FullError{What: h.space.config.What, Limit: h.space.config.Bytes}
	}
	h.set(size)
	return nil
}

// Adopt makes the holding one of that size even if there is no space left: it is on
// disk already. Others get no more until there is space again.
func (h *Holding) Adopt(size int64) {
	h.space.mu.Lock()
	defer h.space.mu.Unlock()
	h.set(size)
}

func (h *Holding) set(size int64) {
	h.space.common -= h.beyond(size) - h.beyond(h.size)
	h.space.used += size - h.size
	h.size = size
}

// Release gives back all of the holding, which must not be used any more but to
// release it again.
func (h *Holding) Release() {
	h.space.mu.Lock()
	defer h.space.mu.Unlock()
	h.set(0)
	if h.shared {
		h.space.shares++
		h.shared, h.share = false, 0
	}
}

// Full reports whether more was adopted than there is.
func (s *Space) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.common < 0
}

// Unused is what nobody has, in bytes, with what is set aside; negative if more was
// adopted than there is.
func (s *Space) Unused() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Bytes - s.used
}
