package platform

import (
	"context"
	"errors"
)

// Read learns all there is to know, once and without following it: in place of
// Start, for a process that does not stay. What could be read is known in spite
// of an error.
func (p *Platform) Read(ctx context.Context) error {
	now, versionsErr := p.readVersions(ctx, versions{})
	p.versions.Store(&now)
	close(p.tried)
	served, _, servedErr := p.discover()
	if servedErr == nil {
		p.served.Store(&served)
	}
	return errors.Join(versionsErr, servedErr)
}
