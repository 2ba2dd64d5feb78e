// A client with nothing but `net`: submits one task, says when somebody cancels it, then what the
// next one that completes has said. Ends with its standard input.
import net from 'node:net';

const socket = net.createConnection(process.argv[2]);
const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
let buffer = '';

socket.setEncoding('utf8');
socket.on('data', (chunk) => {
  buffer += chunk;
  const lines = buffer.split('\n');
  buffer = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.id === 1) say({ submitted: message.result.taskId });
    if (message.method === 'event.taskCancelled') say({ cancelled: message.params.taskId });
    if (message.method === 'event.taskCompleted') say({ completed: message.params.result });
  }
});
socket.write('{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"sleep 600"},"id":1}\n');
process.stdin.on('end', () => socket.end());
process.stdin.resume();
