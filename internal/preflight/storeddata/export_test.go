package storeddata

import "context"

// ScanWithin is [Scan] with other bounds, in bytes.
func ScanWithin(ctx context.Context, object, stored, large int64, lister Lister, validator *Validator) (Report, error) {
	return scanWithin(ctx, bounds{object: object, stored: stored, large: large}, lister, validator)
}
