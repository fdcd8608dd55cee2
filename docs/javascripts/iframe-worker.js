// Search without a server: browsers start no worker for pages opened as files, so its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      const base = new URL(url, location);
      frame.hidden = true;
      this.ready = new Promise((resolve) => {
        const attach = () => {
          document.body.appendChild(frame);
          this.inside = frame.contentWindow;
          const load = (address) => new Promise((loaded) => {
            const script = this.inside.document.createElement("script");
            script.src = new URL(address, base);
            script.onload = loaded;
            this.inside.document.body.appendChild(script);
          });
          this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          this.inside.importScripts = (...addresses) =>
            addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
          load(base).then(resolve);
        };
        if (document.body) attach();
        else addEventListener("DOMContentLoaded", attach);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
