/** Answers that are nothing but an error, in the form that each API has for it. */
import type { ErrorCode } from '../error_code.gen.ts';
import type { GroupReply, GroupRequest } from './group_api.ts';

const nothing = new Uint8Array(0);

/** The answer to `request` that says `errorCode` for all of it; `errorMessage` where the API has room for one. */
export function refusal(
  request: GroupRequest,
  errorCode: ErrorCode,
  errorMessage: string | null = null,
): GroupReply {
  switch (request.api) {
    case 'JoinGroup': {
      const body = {
        errorCode,
        generationId: -1,
        protocolType: null,
        protocolName: null,
        leader: '',
        skipAssignment: false,
        memberId: request.body.memberId,
        members: [],
      };
      return { api: request.api, body };
    }
    case 'SyncGroup': {
      const body = { errorCode, protocolType: null, protocolName: null, assignment: nothing };
      return { api: request.api, body };
    }
    case 'Heartbeat':
    case 'DeleteGroups':
      return { api: request.api, body: { errorCode } };
    case 'LeaveGroup':
      return { api: request.api, body: { errorCode, members: [] } };
    case 'OffsetCommit': {
      const topics = request.body.topics.map(({ name, topicId, partitions }) => ({
        name,
        topicId,
        partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })),
      }));
      return { api: request.api, body: { topics } };
    }
    case 'OffsetFetch':
      return { api: request.api, body: { groupId: request.body.groupId, errorCode, topics: [] } };
    case 'OffsetDelete':
      return { api: request.api, body: { errorCode, topics: [] } };
    case 'ListGroups':
      return { api: request.api, body: { errorCode, groups: [] } };
    case 'DescribeGroups': {
      const { groupId } = request.body;
      const about = { groupState: 'Dead', protocolType: '', protocolData: '', members: [] };
      return { api: request.api, body: { errorCode, errorMessage, groupId, ...about } };
    }
    case 'ConsumerGroupHeartbeat': {
      const about = { memberId: null, memberEpoch: 0, heartbeatIntervalMs: 0, assignment: null };
      return { api: request.api, body: { errorCode, errorMessage, ...about } };
    }
    case 'ConsumerGroupDescribe': {
      const about = { groupState: '', groupEpoch: 0, assignmentEpoch: 0, assignorName: '' };
      const { groupId } = request.body;
      return {
        api: request.api,
        body: { errorCode, errorMessage, groupId, ...about, members: [] },
      };
    }
  }
}
