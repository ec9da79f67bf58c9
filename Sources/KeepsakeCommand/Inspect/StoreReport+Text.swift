#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

extension VersionReport {
  /// One line, with the whole id, because `keepsake restore` takes it.
  func line(on terminal: Terminal) -> String {
    var marks: [String] = []
    if head { marks.append(terminal.paint("head", .good)) }
    if pinned { marks.append("pinned") }
    if tombstone { marks.append(terminal.paint("deleted", .removed)) }
    if !acknowledged { marks.append("not yet in the cloud") }
    if provisional { marks.append("from before the first sync") }
    if !downloaded { marks.append("not downloaded") }
    var line = "\(terminal.paint(id, .name))  \(savedAt)  \(Printable.size(Int64(bytes)))"
    if let title { line += "  \"\(Printable.text(title))\"" }
    if let progress { line += "  progress \(progress)" }
    if let playtimeMilliseconds { line += "  played \(Printable.duration(playtimeMilliseconds))" }
    return marks.isEmpty ? line : line + "  [" + marks.joined(separator: ", ") + "]"
  }
}

extension SlotReport {
  var lines: [String] { lines(on: .plain) }

  func lines(on terminal: Terminal) -> [String] {
    let localMark = local ? "  stays on this device" : ""
    let conflictMark = conflict ? "  " + terminal.paint("CONFLICT: \(CountText.of(heads.count, "head"))", .bad) : ""
    return [terminal.paint(Printable.text(slot), .heading) + localMark + conflictMark]
      + versions.map { "  " + $0.line(on: terminal) }
  }
}

extension StoreReport {
  /// The report for people, without colors.
  var text: String { text(on: .plain) }

  /// Returns the report for people.
  func text(on terminal: Terminal) -> String {
    var lines = [terminal.paint("store \(Printable.text(path))", .heading)]
    if let seal {
      let aside = seal.quarantined == 0 ? "" : ", \(CountText.of(seal.quarantined, "row")) in quarantine"
      lines.append(
        "seal: \(seal.kind)\(seal.checked ? ", verified" : ", signatures not checked (--secret-file)")\(aside)")
    }
    if let container = cloud.container {
      lines.append(
        """
        cloud: container \(container), seq \(cloud.seq)\(cloud.caughtUp ? "" : ", never caught up"), last fetched \
        \(cloud.lastFetched ?? "never")
        """)
    } else {
      lines.append("cloud: never connected")
    }
    lines.append(
      """
      \(CountText.of(slots.count, "slot")), \(CountText.of(contents.count, "content")): \
      \(Printable.size(bytes)) kept in \(Printable.size(encodedBytes))
      """)
    lines.append(
      waitingCommits == 0
        ? "nothing is waiting to be sent" : "\(CountText.of(waitingCommits, "commit")) waiting to be sent or confirmed")
    for group in waiting {
      for refusal in group.refusals {
        lines.append(
          "  \(terminal.paint("refused", .bad)): \(Printable.text(refusal.item)): \(Printable.text(refusal.message))")
      }
    }
    for slot in slots { lines += [""] + slot.lines(on: terminal) }
    if !cells.isEmpty {
      lines +=
        ["", terminal.paint("cells", .heading)]
        + cells.map {
          let name = "\(Printable.text($0.collection))/\(Printable.text($0.key))"
          return "  \(terminal.paint(name, .name)) = \(Self.text(of: $0.value))"
        }
    }
    if !preferences.isEmpty {
      lines +=
        ["", terminal.paint("preferences", .heading)]
        + preferences.map {
          """
            \(terminal.paint(Printable.text($0.name), .name)) = \
          \(Printable.text($0.value))\($0.type.map { " (\(Printable.text($0)))" } ?? "")\($0.synced ? ", synced" : "")
          """
        }
    }
    if !boards.isEmpty {
      lines +=
        ["", terminal.paint("scores", .heading)]
        + boards.map {
          """
            \(Printable.text($0.board)): \(CountText.of($0.scoreCount, "score")) of \
          \(CountText.of($0.playerCount, "player")), \($0.order); keepsake scores lists them
          """
        }
    }
    if !wallet.isEmpty {
      lines +=
        ["", terminal.paint("wallet", .heading)]
        + wallet.map {
          "  \(Printable.text($0.currency)): \($0.total) in all, \($0.spendable) spendable here, \($0.pending) pending"
        }
    }
    if let recordsMessage {
      lines += ["", terminal.paint("records: can't be read: \(Printable.text(recordsMessage))", .bad)]
    }
    if let records {
      lines +=
        ["", terminal.paint("records", .heading)]
        + records.map {
          "  \(Printable.text($0.name)): \($0.rowCount.map { CountText.of($0, "row") } ?? "can't be read")"
        }
    }
    if !contents.isEmpty {
      lines +=
        ["", terminal.paint("contents", .heading)]
        + contents.map {
          "  \($0.sha256.prefix(16))  \(Printable.size(Int64($0.bytes))) in \(Printable.size(Int64($0.encodedBytes)))"
            + ($0.base.map { base in ", delta of \(base.prefix(16))" } ?? "")
            + ($0.depth > 0 ? ", depth \($0.depth)" : "")
        }
    }
    return lines.joined(separator: "\n")
  }

  private static func text(of value: CellValue) -> String {
    value.text(CellText(scalar: text(of:), time: TimeText.iso(milliseconds:), name: { Printable.text($0) }))
  }

  private static func text(of scalar: Scalar) -> String {
    switch scalar {
    case .int(let value): "\(value)"
    case .double(let value): "\(value)"
    case .string(let value): "\"\(Printable.text(value))\""
    case .data(let value): CountText.of(value.count, "byte")
    }
  }
}
#endif
