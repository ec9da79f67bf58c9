import Foundation
import GameWorlds
import Keepsake

// Each task runs in turn in every round, so that a busy machine slows all of them alike; the best round of each counts.
let characters = 10_000
let rounds = 7
let world = Dungeon.sample(characters: characters)

struct Task {
  var name: String
  var bytes: Int
  var best = Duration.seconds(3600)
  var run: () throws -> Void
}

let archived = try Archive.encode(world)
let json = try JSONEncoder().encode(world)
let propertyLists = PropertyListEncoder()
propertyLists.outputFormat = .binary
let propertyList = try propertyLists.encode(world)

var tasks: [Task] = [
  Task(name: "archive encode", bytes: archived.count) { _ = try Archive.encode(world) },
  Task(name: "JSON encode", bytes: json.count) { _ = try JSONEncoder().encode(world) },
  Task(name: "property list encode", bytes: propertyList.count) { _ = try propertyLists.encode(world) },
  Task(name: "archive decode", bytes: archived.count) { _ = try Archive.decode(Dungeon.self, from: archived) },
  Task(name: "JSON decode", bytes: json.count) { _ = try JSONDecoder().decode(Dungeon.self, from: json) },
  Task(name: "property list decode", bytes: propertyList.count) {
    _ = try PropertyListDecoder().decode(Dungeon.self, from: propertyList)
  },
]

let clock = ContinuousClock()
for _ in 0..<rounds {
  for index in tasks.indices {
    let took = try clock.measure { try tasks[index].run() }
    tasks[index].best = min(tasks[index].best, took)
  }
}

print("\(characters) characters, \(characters * 4) items; best of \(rounds) rounds, all in one run\n")
print("| | µs | bytes | time, archive = 1 |")
print("|---|--:|--:|--:|")
for task in tasks {
  let base = tasks[task.name.hasSuffix("decode") ? 3 : 0].best
  let ratio = String(format: "%.1f", task.best / base)
  print("| \(task.name) | \(Int(task.best / .microseconds(1))) | \(task.bytes) | \(ratio) |")
}
