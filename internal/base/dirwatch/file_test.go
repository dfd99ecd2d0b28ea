package dirwatch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollowFile: other content counts when it stays, and a file that cannot be read leaves the content as it was.
func TestFollowFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, unreadable := time.Now(), errors.New("it cannot be read")
		read := func() (string, error) {
			switch since := time.Since(began); {
			case since < 3*time.Second:
				return "a", nil
			case since < 4500*time.Millisecond: // seen once
				return "half of", nil
			case since < 7*time.Second:
				return "b", nil
			case since < 9*time.Second:
				return "", unreadable
			}
			return "b", nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var seen []string
		err := FollowFile(ctx, read, func(content string, err error) {
			if err != nil {
				content = err.Error()
			}
			if len(seen) == 0 || seen[len(seen)-1] != content {
				seen = append(seen, content)
			}
		})
		if want := []string{"a", "b", "it cannot be read", "b"}; !slices.Equal(seen, want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q, %v", seen, err)
		}
	})
}
