/*
 * Runs before the page's own code has come. The printed address carries a token once: it is kept for this tab, and taken
 * out of the address, so that nobody copies it. What the page begins with is asked for at once, with the token.
 */
(() => {
  const key = "endoscope-token";
  const asked = new URLSearchParams(location.search);
  const given = asked.get("token");
  if (given !== null) {
    try {
      sessionStorage.setItem(key, given);
    } catch {
      // a browser that keeps nothing: the token holds until the page is loaded again
    }
    asked.delete("token");
    const rest = asked.toString();
    history.replaceState(null, "", location.pathname + (rest ? `?${rest}` : "") + location.hash);
  }
  let kept = null;
  try {
    kept = sessionStorage.getItem(key);
  } catch {
    // as above
  }
  const token = given ?? kept ?? "";
  window.__endoscopeToken = token;
  window.__endoscopeStart = fetch("./api/start", { headers: { Authorization: `Bearer ${token}` } });
  window.__endoscopeStart.catch(() => undefined); // whoever takes it says so
})();
