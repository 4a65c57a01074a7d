/** Answers of the controller to requests as a whole. */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ControllerReply } from './controller_api.ts';

export function done<Result>(result: Result): ControllerReply<Result> {
  return { errorCode: 0, result };
}

/** @param errorMessage for people */
export function refused(
  errorCode: Exclude<ErrorCode, 0>,
  errorMessage: string,
): ControllerReply<never> {
  return { errorCode, errorMessage, result: null };
}
