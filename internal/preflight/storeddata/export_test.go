package storeddata

import "context"

// SurveyWithin is [Survey] with other bounds, in bytes.
func SurveyWithin(ctx context.Context, object, stored, large int64, lister Lister, validator *Validator) (Report, error) {
	return surveyWithin(ctx, bounds{object: object, stored: stored, large: large}, lister, validator)
}
