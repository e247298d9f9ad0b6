package platform

import "context"

// Read learns all there is to know, once and without following it: in place of
// Start, for a process that does not stay. Each of unknown says what could not be
// read; the rest is known.
func (p *Platform) Read(ctx context.Context) (unknown []error) {
	now, unknown := p.readVersions(ctx, versions{})
	p.versions.Store(&now)
	close(p.tried)
	served, _, err := p.discover()
	if err != nil {
		return append(unknown, err)
	}
	p.served.Store(&served)
	return unknown
}
