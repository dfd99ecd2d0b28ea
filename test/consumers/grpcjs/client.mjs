// A client of gRPC services by xDS. Each line of the input is a target; one call goes to it, and a line of JSON
// says what became of it: the backend that answered, or the code and the message of the error, and how long it took.
import readline from "node:readline";
import grpc from "@grpc/grpc-js";
import { register } from "@grpc/grpc-js-xds";

register();
const clients = new Map();
const same = (bytes) => bytes;
for await (const target of readline.createInterface({ input: process.stdin })) {
  let client = clients.get(target);
  if (!client) clients.set(target, (client = new grpc.Client(target, grpc.credentials.createInsecure())));
  const start = Date.now();
  await new Promise((done) => {
    const call = client.makeUnaryRequest("/grpc.health.v1.Health/Check", same, same, Buffer.alloc(0), { deadline: start + 30_000 }, (error) => {
      console.log(JSON.stringify({ peer: call.getPeer(), code: error?.code ?? 0, message: error?.details ?? "", milliseconds: Date.now() - start }));
      done();
    });
  });
}
process.exit(0);
