// The view in the address: a link that reopens what is seen. A framed page may refuse; then there is just no link.

/** What the address asks for, as an object of texts. */
function readLink() {
  try {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  } catch {
    return {};
  }
}

/** Puts the view into the address, without a step in the history; soon, so that a drag writes once. */
function createLinkWriter(describe) {
  let waiting = 0;
  const link = () => {
    const text = new URLSearchParams(describe()).toString();
    return text ? `#${text}` : "#";
  };
  return {
    link,
    later() {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        try {
          if (location.hash !== link()) history.replaceState(null, "", link());
        } catch {
          // a sandbox without an address of its own
        }
      }, 250);
    },
  };
}
