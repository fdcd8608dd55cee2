// The camera: its picture stays in the page until one is taken.

const LARGEST = 640;
const REASONS = {
  NotAllowedError: "The browser does not let this page use the camera. Allow it beside the address of the page, and try again.",
  NotFoundError: "No camera was found. Connect one, or use files instead.",
  NotReadableError: "The camera is in use by another program. Close that, and try again.",
  OverconstrainedError: "No camera fits. Use files instead.",
};

export class Camera {
  constructor(video) {
    this.video = video;
    this.stream = null;
  }

  get on() {
    return this.stream !== null;
  }

  /** Raises an error that says what to do if there is no camera, or it may not be used. */
  async start() {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new Error("This browser gives cameras only to pages at localhost or with https. Use files instead.");
    }
    try {
      const wanted = { video: { facingMode: "environment", width: { ideal: LARGEST } }, audio: false };
      this.stream = await navigator.mediaDevices.getUserMedia(wanted);
    } catch (error) {
      throw new Error(REASONS[error.name] ?? `The camera cannot be used (${error.message}).`);
    }
    this.video.srcObject = this.stream;
    this.video.hidden = false;
    await this.video.play();
  }

  stop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = this.video.srcObject = null;
    this.video.hidden = true;
  }

  /** What it sees now, as a JPEG file. */
  picture() {
    const { videoWidth: width, videoHeight: height } = this.video;
    const scale = Math.min(1, LARGEST / Math.max(width, height, 1));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(scale * width));
    canvas.height = Math.max(1, Math.round(scale * height));
    canvas.getContext("2d").drawImage(this.video, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
  }
}
