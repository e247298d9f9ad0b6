
// TestPollingIsReported covers a catalog without a poll interval.
func TestPollingIsReported(t *testing.T) {
	t.Parallel()
	const text = `the controller does not check catalog "c" for newer versions`
	found := answerOf(controller.Explanation{Polling: text})
	if lines := found.summary(); len(lines) != 1 || lines[0] != text {
		t.Errorf("the summary is %q", lines)
	}
}
