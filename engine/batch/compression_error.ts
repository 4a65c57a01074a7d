/** `corrupt`: no consumer could read it. `tooLarge`: more than the limit. `unsupported`: no such codec. */
export type CompressionFault = 'corrupt' | 'tooLarge' | 'unsupported';

/** What the decoders throw, and all that they throw. */
export class CompressionError extends Error {
  readonly fault: CompressionFault;

  constructor(fault: CompressionFault, message: string) {
    super(message);
    this.fault = fault;
  }

  static tooLarge(maxBytes: number): CompressionError {
    return new CompressionError('tooLarge', `decompresses to more than ${maxBytes} bytes`);
  }
}
