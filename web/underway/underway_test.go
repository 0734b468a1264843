package underway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Close waits for an answer under way, and none begins after it.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Answers
		begun, closed, goOn := 0, false, make(chan struct{})
		h := a.Counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun++
			<-goOn
		}))
		ask := func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) }
		go ask()
		synctest.Wait()
		go func() {
			a.Close()
			closed = true
		}()
		synctest.Wait()
		require.Equal(t, 1, begun)
		require.False(t, closed)
		ask()
		require.Equal(t, 1, begun)
		close(goOn)
		synctest.Wait()
		require.True(t, closed)
	})
}
